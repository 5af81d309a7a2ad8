//! Whom to believe when a gate shows its certificate: the system's roots, and the ones a person names.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::Error;

pub fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca {
        add_file(&mut roots, path).map_err(|why| {
            Error::Malformed(format!("the certificates in `{}` cannot be used: {why}", path.display()))
        })?;
    }
    if roots.is_empty() {
        let why = "this system trusts no certificates; name the gate's with `--ca FILE`";
        return Err(Error::Malformed(why.to_owned()));
    }
    // The provider is passed, not installed: no other crate's choice can change what is used here.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Malformed(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let mut found = false;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        found = true;
    }
    if found { Ok(()) } else { Err("it holds none in PEM form".to_owned()) }
}
