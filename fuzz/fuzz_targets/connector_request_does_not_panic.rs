//! Any bytes as the body of a call to the VICE connector: it is a call with all its arguments, or a refusal that is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use retroscope::vice_connector::Request;

fuzz_target!(|body: &[u8]| {
    if let Err(refusal) = Request::parse(body) {
        let shape = refusal.to_json();
        assert_eq!(shape["ok"], false);
        assert!(!refusal.message.is_empty());
    }
});
