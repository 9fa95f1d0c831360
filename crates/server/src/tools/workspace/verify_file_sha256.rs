//! `verify_file_sha256`: whether a file is the one that was meant.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::job;
use crate::rom_cache::{changed, hash};
use crate::tools::{Effect, Tool};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct VerifyFileSha256;

/// Which file, and what it should be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    file: String,
    /// 64 hexadecimal digits.
    #[schemars(regex(pattern = "^[a-fA-F0-9]{64}$"))]
    expected_sha256: String,
}

/// What it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Where the file is, from the root of the file system on.
    file: String,
    /// Its SHA-256, lowercase.
    actual_sha256: String,
    /// What was expected, lowercase.
    expected_sha256: String,
    /// Whether they are equal.
    matches: bool,
}

impl Tool for VerifyFileSha256 {
    const NAME: &'static str = "verify_file_sha256";
    const DESCRIPTION: &'static str = "Hash a file of the workspace with SHA-256 and compare it with the hash you expect. Reads every byte, each time.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Verified;

    async fn run(context: &Context, params: Params) -> Result<Verified, ToolError> {
        let Params { file, expected_sha256 } = params;
        if expected_sha256.len() != 64 || !expected_sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                format!("`expectedSha256` has {} characters; 64 hexadecimal digits are wanted", expected_sha256.len()),
            )
            .hint("write the digits alone, without 0x and spaces"));
        }
        job::run(context, move |context, job| {
            let workspace = context.workspace()?;
            let mut opened = workspace.open_any_file(&file, limits::MAX_HASHED_FILE_BYTES)?;
            let actual_sha256 = hash(&mut opened, job)?;
            if workspace.open_any_file(&file, limits::MAX_HASHED_FILE_BYTES)?.identity != opened.identity {
                return Err(changed(&file));
            }
            let expected_sha256 = expected_sha256.to_ascii_lowercase();
            let matches = actual_sha256 == expected_sha256;
            Ok(Verified { file: opened.path.display().to_string(), actual_sha256, expected_sha256, matches })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::{code, files};
    use serde_json::json;

    #[tokio::test]
    async fn a_hash_is_compared_whatever_its_case() {
        let (folder, call) = files(&[("abc", b"abc")]);
        // FIPS 180-2, appendix B.1.
        let published = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        let right = call("verify_file_sha256", json!({"file": "abc", "expectedSha256": published})).await.unwrap();
        assert_eq!(right["matches"], true);
        assert_eq!(right["actualSha256"], published.to_lowercase());
        assert_eq!(right["file"], folder.path().canonicalize().unwrap().join("abc").display().to_string());
        let zeros = "0".repeat(64);
        std::fs::write(folder.path().join("empty"), "").unwrap();
        // The hash of no byte at all, as `sha256sum /dev/null` has it.
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let empty = call("verify_file_sha256", json!({"file": "empty", "expectedSha256": nothing})).await.unwrap();
        assert_eq!(empty["matches"], true);
        let wrong = call("verify_file_sha256", json!({"file": "abc", "expectedSha256": zeros})).await.unwrap();
        assert_eq!(wrong["matches"], false);
        for (file, hash, word) in [
            ("abc", "12", "invalid_arguments"),
            ("../abc", published, "path_refused"),
            ("no", published, "file_not_found"),
        ] {
            let refused = call("verify_file_sha256", json!({"file": file, "expectedSha256": hash})).await;
            assert_eq!(code(refused), word);
        }
    }
}
