//! TLS for browsers, with the site's own certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use busbar_live::server::config::TlsFiles;
use busbar_trust::{SecretError, read_secret};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {} as a {what} in PEM format", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// The error that caused it.
        source: pem::Error,
    },
    /// The key is not one that this daemon alone can read.
    #[error("web.key in the configuration cannot be used")]
    Secret(#[from] SecretError),
    /// The certificate and the key do not go together.
    #[error("{} cannot be used with its key", path.display())]
    Pair {
        /// The certificate.
        path: PathBuf,
        /// The error that caused it.
        source: rustls::Error,
    },
}

/// Accepts TLS connections with these files.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let failed = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::File { path, what, source }
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed(&files.certificate, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&read_secret(&files.key)?)
        .map_err(failed(&files.key, "key"))?;
    let pair = |source| TlsError::Pair { path: files.certificate.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
