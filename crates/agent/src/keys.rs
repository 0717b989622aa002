//! Makes the keys of a site: an authority, and certificates for controllers, observers and nodes.
//!
//! Everything is in one folder, readable by its owner only. A later call adds nodes, or renews certificates,
//! with the authority that is there.

use std::path::{Path, PathBuf};

use busbar_trust::{Durability, Setting, TrustError, TrustedFolder, read_secret};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use crate::tls::{CONTROLLER, KeyFiles, OBSERVER, TlsError, server_name};

/// How long an authority is valid.
const AUTHORITY_DAYS: i64 = 3650;

/// How much clocks may differ.
const SKEW: Duration = Duration::HOUR;

/// What names the folder.
const FOLDER: Setting = Setting("the argument FOLDER");

/// Why keys could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file or folder cannot be written, or another user could have changed it.
    #[error(transparent)]
    Folder(#[from] TrustError),
    /// The authority's key is there without its certificate, or the other way round.
    #[error(
        "{} is missing although the other file of the authority is there; \
         put it back, or choose an empty folder for a new authority", path.display()
    )]
    Half {
        /// The file that is missing.
        path: PathBuf,
    },
    /// A name cannot stand in a certificate, or the authority's key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The authority's key cannot be understood, or a certificate not be made.
    #[error("cannot make a certificate with the authority in {}", folder.display())]
    Certificate {
        /// The folder.
        folder: PathBuf,
        /// The error that caused it.
        source: rcgen::Error,
    },
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Whether the authority is new.
    pub is_new_authority: bool,
    /// The certificates that were made, with their keys beside them.
    pub certificates: Vec<PathBuf>,
}

/// The files of a name in the folder of a site's keys: a node's, or `controller` or `observer`.
pub fn files(folder: &Path, name: &str) -> KeyFiles {
    KeyFiles {
        authority: folder.join("authority.pem"),
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    }
}

/// Makes the keys of a site. The authority is made if there is none. Certificates of the controller and of
/// observers are made if there are none, or if no node is named, and those of nodes in any case; all are
/// valid for `days`.
pub fn make(folder: &Path, nodes: &[String], days: u32) -> Result<Made, KeysError> {
    for node in nodes {
        server_name(node)?;
    }
    let trusted = TrustedFolder::around(folder, 0o700, FOLDER)?;
    let site = Site { trusted, folder, days: i64::from(days) };
    let (issuer, is_new_authority) = site.authority()?;
    let mut certificates = Vec::new();
    for (file, name) in [("controller", CONTROLLER), ("observer", OBSERVER)] {
        if nodes.is_empty() || is_new_authority || !site.has(&format!("{file}.pem"))? {
            let purpose = ExtendedKeyUsagePurpose::ClientAuth;
            certificates.push(site.certificate(&issuer, file, name, purpose)?);
        }
    }
    for node in nodes {
        let purpose = ExtendedKeyUsagePurpose::ServerAuth;
        certificates.push(site.certificate(&issuer, node, node, purpose)?);
    }
    Ok(Made { is_new_authority, certificates })
}

/// The folder of a site's keys, and how long new certificates are valid.
struct Site<'a> {
    trusted: TrustedFolder,
    /// Its path as it was named.
    folder: &'a Path,
    days: i64,
}

impl Site<'_> {
    fn wrong(&self, source: rcgen::Error) -> KeysError {
        KeysError::Certificate { folder: self.folder.to_owned(), source }
    }

    /// Whether a file is there. One that somebody else has put into a folder that is open to others is refused.
    fn has(&self, name: &str) -> Result<bool, KeysError> {
        Ok(self.trusted.existing_file(name)?.is_some())
    }

    /// The authority in the folder, or a new one; and whether it is new.
    fn authority(&self) -> Result<(Issuer<'static, KeyPair>, bool), KeysError> {
        let certificate = self.folder.join("authority.pem");
        let key = self.folder.join("authority.key");
        let wrong = |error| self.wrong(error);
        match (self.has("authority.pem")?, self.has("authority.key")?) {
            (true, true) => {
                let text = read_secret(&key).map_err(TlsError::from)?;
                let key = KeyPair::from_pem(&String::from_utf8_lossy(&text)).map_err(wrong)?;
                // The name and the key are all that a signature needs of an authority.
                Ok((Issuer::new(authority_params(&key), key), false))
            }
            (false, false) => {
                let pair = KeyPair::generate().map_err(wrong)?;
                let params = authority_params(&pair);
                let signed = params.self_signed(&pair).map_err(wrong)?;
                self.write("authority.key", &pair.serialize_pem(), 0o600)?;
                self.write("authority.pem", &signed.pem(), 0o644)?;
                Ok((Issuer::new(params, pair), true))
            }
            (false, true) => Err(KeysError::Half { path: certificate }),
            (true, false) => Err(KeysError::Half { path: key }),
        }
    }

    fn certificate(
        &self,
        issuer: &Issuer<'static, KeyPair>,
        file: &str,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<PathBuf, KeysError> {
        let wrong = |error| self.wrong(error);
        let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(wrong)?;
        params.distinguished_name = named(name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let now = OffsetDateTime::now_utc();
        params.not_before = now - SKEW;
        params.not_after = now + Duration::days(self.days);
        let pair = KeyPair::generate().map_err(wrong)?;
        let signed = params.signed_by(&pair, issuer).map_err(wrong)?;
        self.write(&format!("{file}.key"), &pair.serialize_pem(), 0o600)?;
        self.write(&format!("{file}.pem"), &signed.pem(), 0o644)?;
        Ok(files(self.folder, file).certificate)
    }

    /// Writes a whole file or nothing.
    fn write(&self, name: &str, text: &str, mode: u32) -> Result<(), KeysError> {
        Ok(self.trusted.replace(name, text.as_bytes(), mode, Durability::Now)?)
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// An authority whose name follows from its key, so that those of two sites have different ones.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let identifier = params.key_identifier(key);
    let digits: String = identifier.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = named(&format!("Busbar site authority {digits}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    params.not_before = now - SKEW;
    params.not_after = now + Duration::days(AUTHORITY_DAYS);
    params
}
