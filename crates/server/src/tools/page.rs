//! Lists in parts: which part was asked for, how much of it fits in one answer, and where the next part begins.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which part of a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Items to skip; default 0.
    #[serde(default)]
    pub offset: u64,
    /// Most items, 1 to 1,024; default 100.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// A reply whose list may be a part.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Paged<R> {
    /// The reply.
    #[serde(flatten)]
    pub reply: R,
    /// Items there are.
    pub total: u64,
    /// Items in this answer.
    pub returned: u64,
    /// Why the answer ends before the list does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// `offset` of the next part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl Page {
    /// Cuts the list that `items` finds in `reply` down to this part.
    ///
    /// # Errors
    /// `limit_exceeded` for a `limit` out of range; `invalid_arguments` for an offset behind the end.
    pub fn cut<R, I: Serialize>(
        self,
        context: &Context,
        mut reply: R,
        items: impl FnOnce(&mut R) -> &mut Vec<I>,
    ) -> Result<Paged<R>, ToolError> {
        let most = limits::MAX_LIST_ITEMS;
        let limit = self.limit.unwrap_or(limits::DEFAULT_LIST_ITEMS);
        if limit == 0 || limit > most {
            return Err(ToolError::new(
                ErrorCode::Agent(wire::ErrorCode::LimitExceeded),
                format!("`limit` is {limit}; allowed are 1 to {most}"),
            )
            .detail("limit", most));
        }
        let list = items(&mut reply);
        let total = list.len();
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        if offset > total {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                format!("`offset` is {}, but there are {total} items", self.offset),
            ));
        }
        list.drain(..offset);
        let mut truncated = None;
        if list.len() > limit as usize {
            list.truncate(limit as usize);
            truncated = Some(format!("`limit` is {limit} items"));
        }
        if let Some(cut) = keep_first(context, list) {
            truncated = Some(cut);
        }
        let returned = list.len() as u64;
        let next = truncated.is_some().then_some(self.offset + returned);
        Ok(Paged { reply, total: total as u64, returned, truncated, next })
    }
}

/// Characters left for the items of an answer, beside what stands around them.
fn budget(context: &Context) -> Option<usize> {
    context.output_limit().map(|limit| limit.saturating_sub(limit / 8 + 1_000))
}

/// How many of the items, in their order, fit in one answer.
fn fitting<'a, I: Serialize + 'a>(context: &Context, items: impl Iterator<Item = &'a I>) -> usize {
    let Some(mut left) = budget(context) else { return usize::MAX };
    let mut count = 0;
    for item in items {
        match left.checked_sub(characters(item) + 1) {
            Some(rest) => left = rest,
            None => break,
        }
        count += 1;
    }
    count
}

/// Keeps the first items, as many as fit in one answer; says why when it took any away.
pub fn keep_first<I: Serialize>(context: &Context, list: &mut Vec<I>) -> Option<String> {
    let count = fitting(context, list.iter());
    (count < list.len()).then(|| {
        list.truncate(count);
        reason(context)
    })
}

/// The first items, as many as fit in one answer beside `rest` characters that are not in the list.
pub fn fitting_beside<I: Serialize>(context: &Context, rest: usize, items: impl Iterator<Item = I>) -> Vec<I> {
    fitting_by(context, rest, items, |item| characters(item) + 1)
}

/// The same for items of which each takes as many characters as `cost` says.
pub fn fitting_by<I>(
    context: &Context,
    rest: usize,
    items: impl Iterator<Item = I>,
    cost: impl Fn(&I) -> usize,
) -> Vec<I> {
    let Some(mut left) = context.output_limit().map(|limit| limit.saturating_sub(rest.saturating_add(200))) else {
        return items.collect();
    };
    let mut kept = Vec::new();
    for item in items {
        match left.checked_sub(cost(&item)) {
            Some(rest) => left = rest,
            None => break,
        }
        kept.push(item);
    }
    kept
}

/// Characters of a value as JSON.
pub fn characters<I: Serialize + ?Sized>(item: &I) -> usize {
    serde_json::to_string(item).map_or(0, |text| text.chars().count())
}

/// Keeps the last items, as many as fit in one answer; says how many it took away.
pub fn keep_last<I: Serialize>(context: &Context, list: &mut Vec<I>) -> u64 {
    let surplus = list.len().saturating_sub(fitting(context, list.iter().rev()));
    list.drain(..surplus);
    surplus as u64
}

/// The sentence that says that an answer was cut.
pub fn reason(context: &Context) -> String {
    format!("one answer holds {} characters", context.output_limit().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_client::AgentClient;
    use crate::context::Facts;
    use crate::launch_roots::LaunchRoots;
    use std::time::Duration;

    fn context(limit: Option<usize>) -> Context {
        Context::new(AgentClient::new("", Duration::ZERO), limit, None, LaunchRoots::default(), Facts::default())
    }

    fn cut(page: Page, limit: Option<usize>, length: usize) -> Result<Paged<Vec<u32>>, ToolError> {
        page.cut(&context(limit), (0..length as u32).collect(), |list: &mut Vec<u32>| list)
    }

    #[test]
    fn parts_follow_each_other_without_a_gap() {
        let mut seen = Vec::new();
        let mut offset = Some(0);
        while let Some(at) = offset {
            let part = cut(Page { offset: at, limit: Some(40) }, None, 100).unwrap();
            assert_eq!((part.total, part.returned), (100, part.reply.len() as u64));
            assert_eq!(part.truncated.is_some(), part.next.is_some());
            seen.extend(part.reply);
            offset = part.next;
        }
        assert_eq!(seen, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn an_answer_never_outgrows_its_bound() {
        // 2,400 characters less an eighth and 1,000 leave 1,100; an item of three digits takes four with its comma,
        // and the first hundred take three or two.
        let part = cut(Page { offset: 100, limit: Some(1_000) }, Some(2_400), 900).unwrap();
        assert_eq!(part.returned, 275);
        assert_eq!(part.next, Some(375));
        assert_eq!(part.truncated.unwrap(), "one answer holds 2400 characters");
        let mut list: Vec<u32> = (100..900).collect();
        assert_eq!(keep_last(&context(Some(2_400)), &mut list), 800 - 275);
        assert_eq!(list.last(), Some(&899));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(cut(Page { offset: 0, limit: Some(0) }, None, 5).unwrap_err().message.contains("1 to 1024"));
        assert!(cut(Page { offset: 0, limit: Some(1_025) }, None, 5).is_err());
        assert!(cut(Page { offset: 6, limit: None }, None, 5).unwrap_err().message.contains("there are 5 items"));
        assert_eq!(cut(Page { offset: 5, limit: None }, None, 5).unwrap().returned, 0);
    }
}
