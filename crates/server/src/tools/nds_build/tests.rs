//! Tests of the group.
