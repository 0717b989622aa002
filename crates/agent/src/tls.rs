//! TLS between machines: both sides show a certificate of the site's authority, and nobody else's counts.
//!
//! [`crate::keys`] makes the files. An agent's certificate carries the node's name and serves to answer only;
//! a controller's carries `CONTROLLER` and serves to ask only. So the key of one node, if it is stolen, sets no
//! caps on another.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use busbar_trust::{SecretError, read_secret};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// The name in the certificate of a client that may set caps.
pub(crate) const CONTROLLER: &str = "busbar-controller";

/// The name in the certificate of a client that may only look.
pub(crate) const OBSERVER: &str = "busbar-observer";

/// How long before it ends a certificate is worth a warning.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The files that one side of a connection needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFiles {
    /// The certificate of the site's authority.
    pub authority: PathBuf,
    /// The side's own certificate.
    pub certificate: PathBuf,
    /// The key of the certificate, readable by its owner only.
    pub key: PathBuf,
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}; 'busbar agent keys' makes a site's keys", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error that caused it.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{} is not a {what} in PEM format: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The expected form.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// Others can read a key, or own it.
    #[error(transparent)]
    Secret(SecretError),
    /// A certificate is not valid.
    #[error("the certificate {} cannot be used: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The mistake, and how to correct it.
        reason: String,
    },
    /// A name cannot stand in a certificate.
    #[error(
        "'{0}' cannot be the name of a node in a certificate; use letters, digits, '-' and '.'"
    )]
    Name(String),
}

impl From<SecretError> for TlsError {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::Unreadable { path, source } => TlsError::Unreadable { path, source },
            error => TlsError::Secret(error),
        }
    }
}

/// The certificates and the key of one side, read and checked.
struct Loaded {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl KeyFiles {
    fn load(&self) -> Result<Loaded, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate).map_err(|error| TlsError::Certificate {
                path: self.authority.clone(),
                reason: explain(&error),
            })?;
        }
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read_secret(&self.key)?)
            .map_err(|error| unreadable(&self.key, "private key", error))?;
        Ok(Loaded { roots: Arc::new(roots), chain, key })
    }

    fn wrong(&self, error: &rustls::Error) -> TlsError {
        TlsError::Certificate { path: self.certificate.clone(), reason: explain(error) }
    }

    /// The agent's side. Its certificate must be valid now and carry the node's name.
    pub(crate) fn server(&self, node: &str) -> Result<Arc<ServerConfig>, TlsError> {
        let loaded = self.load()?;
        self.check_server(&loaded, node, UnixTime::now())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(loaded.roots, provider())
            .build()
            .map_err(|error| TlsError::Certificate {
                path: self.authority.clone(),
                reason: error.to_string(),
            })?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.wrong(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(loaded.chain, loaded.key)
            .map_err(|error| self.wrong(&error))?;
        Ok(Arc::new(config))
    }

    /// The controller's or observer's side. Its certificate must be valid now.
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let loaded = self.load()?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(loaded.roots.clone(), provider())
                .build()
                .map_err(|error| TlsError::Certificate {
                path: self.authority.clone(),
                reason: error.to_string(),
            })?;
        let (own, rest) = self.split(&loaded.chain)?;
        verifier
            .verify_client_cert(own, rest, UnixTime::now())
            .map_err(|error| self.wrong(&error))?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.wrong(&error))?
            .with_root_certificates(loaded.roots)
            .with_client_auth_cert(loaded.chain, loaded.key)
            .map_err(|error| self.wrong(&error))?;
        Ok(Arc::new(config))
    }

    /// What an operator should know about the agent's certificate: that it ends soon.
    pub(crate) fn server_warning(&self, node: &str) -> Option<String> {
        let loaded = self.load().ok()?;
        let later = UnixTime::since_unix_epoch(Duration::from_secs(
            UnixTime::now().as_secs().saturating_add(WARN_BEFORE.as_secs()),
        ));
        match self.check_server(&loaded, node, later) {
            Err(TlsError::Certificate { path, .. }) => Some(format!(
                "the certificate {} ends within 30 days; make a new one with 'busbar agent keys'",
                path.display()
            )),
            _ => None,
        }
    }

    fn split<'a>(
        &self,
        chain: &'a [CertificateDer<'static>],
    ) -> Result<(&'a CertificateDer<'static>, &'a [CertificateDer<'static>]), TlsError> {
        chain.split_first().ok_or_else(|| TlsError::Format {
            path: self.certificate.clone(),
            what: "certificate",
            reason: "there is none in it".to_owned(),
        })
    }

    fn check_server(&self, loaded: &Loaded, node: &str, at: UnixTime) -> Result<(), TlsError> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(loaded.roots.clone(), provider())
                .build()
                .map_err(|error| TlsError::Certificate {
                path: self.authority.clone(),
                reason: error.to_string(),
            })?;
        let (own, rest) = self.split(&loaded.chain)?;
        verifier
            .verify_server_cert(own, rest, &server_name(node)?, &[], at)
            .map(drop)
            .map_err(|error| self.wrong(&error))
    }
}

/// A node's name as certificates carry it.
pub(crate) fn server_name(node: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(node.to_owned()).map_err(|_| TlsError::Name(node.to_owned()))
}

/// Whether a certificate, which was verified before, carries a name.
pub(crate) fn carries(certificate: &[u8], name: &str) -> bool {
    let certificate = CertificateDer::from(certificate);
    let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(&certificate), server_name(name))
    else {
        return false;
    };
    rustls::client::verify_server_name(&parsed, &name).is_ok()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |error| unreadable(path, "certificate", error);
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(TlsError::Format {
            path: path.to_owned(),
            what: "certificate",
            reason: "there is none in it".to_owned(),
        }),
    }
}

fn unreadable(path: &Path, what: &'static str, error: rustls::pki_types::pem::Error) -> TlsError {
    let path = path.to_owned();
    match error {
        rustls::pki_types::pem::Error::Io(source) => TlsError::Unreadable { path, source },
        other => TlsError::Format { path, what, reason: other.to_string() },
    }
}

/// A TLS error in words that an operator can act on.
pub(crate) fn explain(error: &rustls::Error) -> String {
    use rustls::Error::{AlertReceived, InvalidCertificate};
    const NEW: &str = "make a new one with 'busbar agent keys'";
    match error {
        InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
            format!("it expired on {}; {NEW}", date(*not_after))
        }
        InvalidCertificate(CertificateError::Expired) => format!("it has expired; {NEW}"),
        InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. }) => format!(
            "it is valid from {} on, and this machine's clock says {}; set the clock",
            date(*not_before),
            date(UnixTime::now())
        ),
        InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "another authority signed it; both sides need keys of the same 'busbar agent keys'"
                .to_owned()
        }
        InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("it carries the name of another node ({error}); {NEW} for this one"),
        InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        ) => "it is for the other side of a connection: an agent needs a node's certificate, \
             a controller a controller's"
            .to_owned(),
        AlertReceived(AlertDescription::CertificateExpired) => {
            format!("the other side says that our certificate has expired; {NEW}")
        }
        AlertReceived(AlertDescription::UnknownCA) => {
            "the other side does not know the authority of our certificate; \
             both sides need keys of the same 'busbar agent keys'"
                .to_owned()
        }
        rustls::Error::InvalidMessage(_) => {
            format!("the other side does not speak TLS ({error})")
        }
        other => other.to_string(),
    }
}

fn date(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(time) => time.date().to_string(),
        Err(_) => format!("second {seconds}"),
    }
}
