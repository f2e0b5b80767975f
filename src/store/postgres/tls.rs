//! TLS: verified by the system's authorities, or by those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::StoreError;

/// By the authorities that the system trusts.
pub(super) fn of_the_system() -> Result<Arc<ClientConfig>, StoreError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(StoreError::rejected(
            "the system has no certificates of authorities, so no server can be verified: install them (ca-certificates), or \
             name a file of them with ca_file",
        ));
    }
    with_roots(roots)
}

/// By the authorities in a PEM file.
pub(super) fn of_a_file(path: &Path) -> Result<Arc<ClientConfig>, StoreError> {
    let unusable =
        || StoreError::rejected(format!("{} has no certificate in PEM form that can be used", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable().with_source(error))? {
        let certificate = certificate.map_err(|error| unusable().with_source(error))?;
        roots.add(certificate).map_err(|error| unusable().with_source(error))?;
    }
    if roots.is_empty() { Err(unusable()) } else { with_roots(roots) }
}

/// With a provider named here: where a program has several, there is no default.
fn with_roots(roots: RootCertStore) -> Result<Arc<ClientConfig>, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::rejected("TLS cannot be set up").with_source(error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
