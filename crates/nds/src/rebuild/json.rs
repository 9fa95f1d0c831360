//! JSON as manifests have to be: no key twice, nothing after the end; and the canonical text that identities are hashed from.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads one value. The error says where a key stands twice.
pub(super) fn parse(text: &[u8]) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { place: String::new() }.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// A value at a place, a JSON pointer.
struct Strict {
    place: String,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict { place: format!("{}/{}", self.place, list.len()) })? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let place = pointer(&self.place, &key);
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key at {place} stands twice")));
            }
            let value = entries.next_value_seed(Strict { place })?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// The pointer of a key below a place (RFC 6901), cut where a key is longer than any of ours.
pub(super) fn pointer(place: &str, key: &str) -> String {
    let shown: String = key.chars().take(64).collect();
    format!("{place}/{}", shown.replace('~', "~0").replace('/', "~1"))
}

/// The canonical text: keys sorted at every level, no spaces.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(list) => {
            text.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(item, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_and_trailing_data_are_refused_with_their_place() {
        let twice = parse(br#"{"a":[{"b":1},{"c/d":1,"c/d":2}]}"#).unwrap_err();
        assert!(twice.contains("/a/1/c~1d stands twice"), "{twice}");
        assert!(parse(b"{} {}").unwrap_err().contains("trailing"));
        assert!(parse(&[b"[".repeat(1000), b"]".repeat(1000)].concat()).is_err());
    }

    #[test]
    fn canonical_text_has_sorted_keys_and_no_spaces() {
        let value = parse(br#"{ "b" : [1, {"z": null, "y": true}], "a": "\u00e9\n" }"#).unwrap();
        assert_eq!(canonical(&value), "{\"a\":\"\u{e9}\\n\",\"b\":[1,{\"y\":true,\"z\":null}]}");
    }
}
