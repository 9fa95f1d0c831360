//! `nds_list_files`: the files of a ROM's file system.

use super::prelude::*;
use ::nds::File;

/// The tool.
#[derive(Debug)]
pub struct NdsListFiles;

/// Which files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Only paths that begin so, such as `data/`.
    #[serde(default)]
    #[schemars(length(max = limits::MAX_NDS_PATH_BYTES))]
    prefix: String,
    /// Files to skip.
    #[serde(default)]
    offset: Skip,
    /// Files at most.
    #[serde(default)]
    limit: ListMost,
}

/// The files.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Files {
    /// Files that fit.
    total: usize,
    /// Files that were skipped.
    offset: usize,
    /// Files at most, as asked.
    limit: usize,
    /// `offset` of the next part.
    next_offset: Option<usize>,
    /// Files in this answer.
    returned: usize,
    /// Why there are fewer than fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
    /// The files, by number.
    files: Vec<FileShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileShown {
    file_id: u32,
    /// `null` for a file without a name.
    path: Option<String>,
    rom_offset: u32,
    end_offset: u32,
    size: u32,
}

impl Tool for NdsListFiles {
    const NAME: &'static str = "nds_list_files";
    const DESCRIPTION: &'static str = "List the NitroFS files of a Nintendo DS ROM with number, path and byte range. The FAT \
         decides ranges, the FNT names; files that only hold overlays are in nds_list_overlays.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Files>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params { rom, prefix, offset, limit } = params;
        let most = limits::MAX_NDS_PATH_BYTES;
        if prefix.len() > most {
            let message = format!("`prefix` has {} bytes; {most} are allowed", prefix.len());
            return Err(ToolError::new(ErrorCode::InvalidArguments, message));
        }
        let offset = offset.count("offset", ErrorCode::InvalidArguments)?;
        let limit = limit.count("limit", ErrorCode::InvalidArguments)?;
        on_rom(context, rom, move |context, _, rom| list(context, &prefix, offset, limit, rom).map(Shown)).await
    }
}

fn list(context: &Context, prefix: &str, offset: usize, limit: usize, rom: &Rom) -> Result<Files, ToolError> {
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let fits = |file: &&File| prefix.is_empty() || file.path.as_deref().is_some_and(|path| path.starts_with(prefix));
    let all: Vec<&File> = rom.files().iter().filter(|file| rom.is_nitrofs(file)).filter(fits).collect();
    // By the contract a part behind the end is empty.
    let wanted = Wanted { offset: offset.min(all.len()), limit: Some(limit) };
    let part = part(context, wanted, all.len(), &json!({}), |at| to_value(&all.get(at).map(|file| shown(file))))?;
    Ok(Files {
        total: all.len(),
        offset,
        limit,
        next_offset: part.next,
        returned: part.returned,
        truncated: part.truncated,
        files: all.get(part.range).unwrap_or_default().iter().map(|file| shown(file)).collect(),
    })
}

fn shown(file: &File) -> FileShown {
    FileShown {
        file_id: file.id,
        path: file.path.clone(),
        rom_offset: file.start,
        end_offset: file.end,
        size: file.size(),
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::{built, code};
    use ::nds::testing::RomBuilder;
    use serde_json::json;

    #[tokio::test]
    async fn files_are_listed_in_parts_and_by_prefix() {
        let (_folder, call) = built(&RomBuilder::everything());
        let all = call("nds_list_files", json!({"rom": "rom.nds"})).await.unwrap();
        assert_eq!(
            (&all["total"], &all["offset"], &all["limit"], &all["nextOffset"]),
            (&json!(5), &json!(0), &json!(100), &json!(null))
        );
        let mut paths: Vec<_> =
            all["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["data/a.bin", "data/c.bin", "data/deep/er/b.bin", "readme.txt", "z/d"]);
        let part = call("nds_list_files", json!({"rom": "rom.nds", "limit": 2, "offset": 1})).await.unwrap();
        assert_eq!((&part["nextOffset"], &part["returned"]), (&json!(3), &json!(2)));
        assert_eq!(part["files"][0], all["files"][1]);
        let below = call("nds_list_files", json!({"rom": "rom.nds", "prefix": "/data/deep"})).await.unwrap();
        assert_eq!((&below["total"], &below["files"][0]["size"]), (&json!(1), &json!(100)));
        let behind = call("nds_list_files", json!({"rom": "rom.nds", "offset": 99})).await.unwrap();
        assert_eq!((&behind["files"], &behind["nextOffset"]), (&json!([]), &json!(null)));
    }

    #[tokio::test]
    async fn one_over_the_limit_is_refused() {
        let (_folder, call) = built(&RomBuilder::default());
        for (name, value) in
            [("limit", json!(201)), ("limit", json!(0)), ("offset", json!(-1)), ("prefix", json!("a".repeat(4_097)))]
        {
            assert_eq!(code(call("nds_list_files", json!({"rom": "rom.nds", name: value})).await), "invalid_arguments");
        }
    }

    #[tokio::test]
    async fn what_an_answer_cannot_hold_is_continued() {
        let files = (0..200).map(|at| (format!("{}/{at:03}", "long name ".repeat(12)), vec![at as u8])).collect();
        let (_folder, call) = built(&RomBuilder { files, ..RomBuilder::default() });
        let (mut seen, mut offset) = (0, json!(0));
        while !offset.is_null() {
            let part = call("nds_list_files", json!({"rom": "rom.nds", "limit": 200, "offset": offset})).await.unwrap();
            assert!(part.to_string().len() <= 20_000);
            seen += part["returned"].as_u64().unwrap();
            offset = part["nextOffset"].clone();
        }
        assert_eq!(seen, 200);
    }
}
