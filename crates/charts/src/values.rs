//! Layers of values, merged as helm merges `-f` files: maps deeply, everything else replaced; `null` removes a key.

use serde_json::{Map, Value};

/// Merges `layers`, later ones win.
///
/// A `null` that meets a map's or scalar's key of an earlier layer replaces it and stays in the result: the result is a layer itself, and only a `null` that helm
/// sees takes a key of the chart's own values.yaml away.
pub fn merge(layers: impl IntoIterator<Item = Value>) -> Value {
    let mut merged = Value::Object(Map::new());
    for layer in layers {
        match layer {
            // A layer without content (an empty file, an absent `values_overrides`) changes nothing.
            Value::Null => {}
            layer => merge_into(&mut merged, layer),
        }
    }
    merged
}

fn merge_into(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                match below.get_mut(&key) {
                    Some(present) => merge_into(present, value),
                    None => {
                        below.insert(key, value);
                    }
                }
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_merge_deeply_and_lists_are_replaced() {
        let merged = merge([
            json!({"image": {"repository": "a", "tag": "1"}, "args": [1, 2, 3], "keep": true}),
            json!({"image": {"tag": "2"}, "args": [9]}),
            Value::Null,
            json!({"image": {"digest": "d"}}),
        ]);
        assert_eq!(
            merged,
            json!({"image": {"repository": "a", "tag": "2", "digest": "d"}, "args": [9], "keep": true})
        );
    }

    #[test]
    fn a_null_wipes_what_is_below_and_still_reaches_helm() {
        let merged = merge([
            json!({"probe": {"path": "/"}, "x": 1}),
            json!({"probe": null, "fresh": null}),
        ]);
        assert_eq!(merged, json!({"probe": null, "x": 1, "fresh": null}));
        let merged = merge([merged, json!({"probe": {"port": 1}})]);
        assert_eq!(merged["probe"], json!({"port": 1}));
    }

    #[test]
    fn a_map_replaces_a_scalar_and_the_other_way_round() {
        assert_eq!(
            merge([json!({"a": 1}), json!({"a": {"b": 1}})]),
            json!({"a": {"b": 1}})
        );
        assert_eq!(
            merge([json!({"a": {"b": 1}}), json!({"a": "x"})]),
            json!({"a": "x"})
        );
        assert_eq!(merge([]), json!({}));
    }
}
