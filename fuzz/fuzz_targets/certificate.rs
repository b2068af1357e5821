//! What a certificate says of its holder, before anything vouches for it; and the URI alone.
#![no_main]

use causeway_broker::identity::{Certified, Identity};
use rustls_pki_types::CertificateDer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(certified) = Certified::read(&CertificateDer::from(bytes)) {
        assert_eq!(
            Identity::parse(&certified.identity.uri()),
            Ok(certified.identity.clone())
        );
        let _ = certified.renew_at();
    }
    if let Ok(uri) = std::str::from_utf8(bytes)
        && let Ok(identity) = Identity::parse(uri)
    {
        assert_eq!(identity.uri(), uri);
    }
});
