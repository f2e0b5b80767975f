//! TLS: required unless told otherwise, and verified.

use leasehold::store::Store;
use leasehold::store::postgres::PostgresStore;
use leasehold::{ReportId, StoreErrorKind};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::cluster::Cluster;
use crate::scene::{budget, everything, fails};

const HBA: &str = "hostssl all all 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 trust\n";

/// An authority's certificate in a file, and a server with a certificate of it for this name.
fn encrypted(name: &str) -> (tempfile::NamedTempFile, Cluster) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority.pem()).unwrap();
    let cluster = Cluster::start_with(&["ssl=on"], HBA, |data| {
        std::fs::write(data.join("server.crt"), certificate.pem()).unwrap();
        std::fs::write(data.join("server.key"), key.serialize_pem()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
            let owner = std::fs::metadata(data).unwrap();
            for name in ["server.crt", "server.key"] {
                let path = data.join(name);
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
                chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
            }
        }
    });
    (file, cluster)
}

fn url(cluster: &Cluster, host: &str, and: &str) -> String {
    format!("postgresql://postgres@{host}:{}/postgres{and}", cluster.port())
}

#[tokio::test]
async fn a_server_without_tls_is_refused_unless_told_otherwise() {
    let cluster = Cluster::start(&[]);
    // The driver's own default, and `prefer`, would go on in the clear.
    for and in ["", "?sslmode=prefer", "?sslmode=require"] {
        let store = PostgresStore::builder(&url(&cluster, "127.0.0.1", and)).build().unwrap();
        fails(store.check(budget()).await, StoreErrorKind::Rejected, "TLS with the server failed");
    }
    let plain = PostgresStore::builder(&url(&cluster, "127.0.0.1", "?sslmode=disable")).build().unwrap();
    fails(plain.check(budget()).await, StoreErrorKind::Rejected, "run install()");
    let plain = PostgresStore::builder(&url(&cluster, "127.0.0.1", "")).without_tls().build().unwrap();
    fails(plain.check(budget()).await, StoreErrorKind::Rejected, "run install()");
}

#[tokio::test]
async fn a_server_is_verified_by_the_authorities_of_a_file_and_the_traffic_is_encrypted() {
    let (authority, cluster) = encrypted("localhost");
    let store = PostgresStore::builder(&url(&cluster, "localhost", "")).ca_file(authority.path()).build().unwrap();
    store.install(budget()).await.unwrap();
    store.provision(ReportId::from_name("report"), budget()).await.unwrap();
    let admin = crate::support::connect(&cluster.config()).await;
    let sql =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'leasehold'";
    assert!(admin.query_typed(sql, &[]).await.unwrap()[0].get::<_, bool>(0));
}

#[tokio::test]
async fn a_certificate_of_another_authority_or_for_another_name_is_refused() {
    let (authority, cluster) = encrypted("localhost");
    let (another, _other) = encrypted("localhost");
    let system = PostgresStore::builder(&url(&cluster, "localhost", "")).build();
    // A machine without any authorities says so at once.
    let system = match system {
        Ok(store) => store.check(budget()).await.map(drop),
        Err(error) => Err(error),
    };
    let error = fails(system, StoreErrorKind::Rejected, "ca_file");
    assert!(!everything(&error).is_empty());
    let stranger = PostgresStore::builder(&url(&cluster, "localhost", "")).ca_file(another.path()).build().unwrap();
    fails(stranger.check(budget()).await, StoreErrorKind::Rejected, "TLS with the server failed");
    let by_address = PostgresStore::builder(&url(&cluster, "127.0.0.1", "")).ca_file(authority.path()).build().unwrap();
    fails(by_address.check(budget()).await, StoreErrorKind::Rejected, "TLS with the server failed");
}

#[tokio::test]
async fn a_file_without_a_certificate_is_rejected() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for path in [file.path(), std::path::Path::new("/no/such/file.pem")] {
        let built = PostgresStore::builder("postgresql://localhost/reports").ca_file(path).build();
        fails(built, StoreErrorKind::Rejected, "no certificate");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_needs_no_tls_and_beside_another_host_it_does() {
    let cluster = Cluster::start(&[]);
    let socket = format!("host={} port={} user=postgres dbname=postgres", cluster.folder().display(), cluster.port());
    let store = PostgresStore::builder(&socket).build().unwrap();
    store.install(budget()).await.unwrap();
    store.provision(ReportId::from_name("report"), budget()).await.unwrap();
    let with_another = socket.replace(" port=", ",127.0.0.1 port=");
    let store = PostgresStore::builder(&with_another).build().unwrap();
    fails(store.check(budget()).await, StoreErrorKind::Rejected, "TLS with the server failed");
}
