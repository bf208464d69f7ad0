//! What is expected of every transcript: outcome, figures, and what was worth telling on the way.

pub(crate) const OUTCOMES: &[(&str, &str)] = &[
    (
        "aider/authentication",
        r#"not logged in, or not permitted: "Incorrect API key provided: sk-stub." · openai/stub-model · no session"#,
    ),
    (
        "aider/context_full",
        r#"the model's context is full: "Model openai/stub-model has hit a token limit!" · 2300+0r+0w>0 $0.0000 · openai/stub-model · no session"#,
    ),
    (
        "aider/empty",
        r#"it finished without a word: "" · 2400+0r+0w>40 $0.0000 · openai/stub-model · no session"#,
    ),
    (
        "aider/network",
        r#"the provider cannot be reached: "Connection error." · openai/stub-model · no session · retrying: the provider cannot be reached"#,
    ),
    ("aider/no_edit", r#"ok "Nothing to do here." · 2400+0r+0w>40 $0.0000 · openai/stub-model · no session"#),
    (
        "aider/not_found",
        r#"not logged in, or not permitted: "model not found" · openai/stub-model · no session"#,
    ),
    (
        "aider/quota",
        r#"usage limit: "You exceeded your current quota, please check your plan and …" · openai/stub-model · no session · retrying: usage limit"#,
    ),
    (
        "aider/server_error",
        r#"the provider is overloaded: "Internal error" · openai/stub-model · no session · retrying: the provider is overloaded"#,
    ),
    (
        "aider/success",
        r#"ok "I will add it.\n\nhello.txt\n```\n<<<<<<< SEARCH\n=======\nhello\n>…" · 2400+0r+0w>40 $0.0000 · 1 tools · openai/stub-model · no session"#,
    ),
    (
        "claude/background_child",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0140 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/bad_request",
        r#"failed: "API Error: 400 messages: not like this" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/compacted",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 6000+0r+0w>200 $0.0350 · 3 tools · context 1200/1000000 · claude-opus-4-8[1m] · notice: it compacted its context"#,
    ),
    (
        "claude/context_full",
        r#"the model's context is full: "Prompt is too long · the request is ~214000 tokens (limit 20…" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/dropped",
        r#"the provider cannot be reached: "API Error: Unable to connect to API (ECONNRESET)" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m] · retrying: the provider cannot be reached"#,
    ),
    (
        "claude/dropped_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0070 · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/empty_result",
        r#"it finished without a word: "" · 10800+0r+0w>360 $0.0630 · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/error_in_stream",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>41 $0.0130 · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/fallback_model",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0014 · context 1200/200000 · claude-haiku-4-5-20251001 · retrying: the provider is overloaded · notice: it fell back to claude-haiku-4-5-20251001"#,
    ),
    (
        "claude/interrupted_in_call",
        r#"interrupted: "[ede_diagnostic] result_type=user last_content_type=n/a stop…" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/interrupted_in_tool",
        r#"interrupted: "[ede_diagnostic] result_type=user last_content_type=n/a stop…" · 1200+0r+0w>40 $0.0070 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m] · tool failed"#,
    ),
    ("claude/killed", r#"interrupted: "" · 1200+0r+0w>1 $0.0000 · 1 tools · claude-opus-4-8[1m]"#),
    (
        "claude/max_budget",
        r#"the budget is used up: "Reached maximum budget ($1)" · 900000+0r+0w>40 $4.5010 · 1 tools · context 900000/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/max_tokens",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0140 · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/max_turns",
        r#"its own limit on turns or money: "Reached maximum number of turns (1)" · 1200+0r+0w>40 $0.0070 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/model_not_found",
        r#"not logged in, or not permitted: "There's an issue with the selected model (nonesuch). It may …" · 0+0r+0w>0 $0.0000 · nonesuch"#,
    ),
    (
        "claude/no_key",
        r#"not logged in, or not permitted: "Not logged in · Please run /login" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/not_verbose",
        r#"failed: "Error: When using --print, --output-format=stream-json requi…" · no session"#,
    ),
    (
        "claude/overloaded",
        r#"the provider is overloaded: "API Error: 529 Overloaded. This is a server-side issue, usua…" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m] · retrying: the provider is overloaded"#,
    ),
    (
        "claude/overloaded_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0070 · context 1200/1000000 · claude-opus-4-8[1m] · retrying: the provider is overloaded"#,
    ),
    (
        "claude/parallel_tools",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0140 · 2 tools · context 1200/1000000 · claude-opus-4-8[1m] · tool failed"#,
    ),
    (
        "claude/permission_denied",
        r#"it was not permitted to act: "" · 2400+0r+0w>80 $0.0140 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m] · tool failed · notice: it was not permitted to use Bash"#,
    ),
    (
        "claude/rate_limited_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0070 · context 1200/1000000 · claude-opus-4-8[1m] · retrying: the provider is overloaded"#,
    ),
    (
        "claude/refusal",
        r#"the model declined: "API Error: Claude Code is unable to respond to this request,…" · 1200+0r+0w>40 $0.0070 · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/resume_unknown",
        r#"its session is not known any more: "No conversation found with session ID: 5b0f3c52-6d0a-4f6b-9a…" · 0+0r+0w>0 $0.0000 · no session"#,
    ),
    ("claude/resumed", r#"ok "Still done." · 1200+0r+0w>40 $0.0070 · context 1200/200000 · claude-opus-4-8"#),
    (
        "claude/server_error",
        r#"the provider is overloaded: "API Error: 500 Internal server error. This is a server-side …" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m] · retrying: the provider is overloaded"#,
    ),
    (
        "claude/session_in_use",
        r#"its session is not known any more: "Error: Session ID 5b0f3c52-6d0a-4f6b-9a53-0d3c8a3d1e11 is al…" · no session"#,
    ),
    (
        "claude/subagent",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 3600+0r+0w>120 $0.0210 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/success",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 3600+2400r+900w>120 $0.0278 · 2 tools · context 2300/1000000 · claude-opus-4-8[1m]"#,
    ),
    ("claude/terminated", r#"interrupted: "" · 1200+0r+0w>1 $0.0000 · 1 tools · claude-opus-4-8[1m]"#),
    (
        "claude/truncated_later",
        r#"its output ends too early: "" · 1200+0r+0w>40 $0.0070 · 1 tools · context 1200/1000000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/truncated_stream",
        r#"its output ends too early: "" · 1200+0r+0w>1 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/unreachable",
        r#"the provider cannot be reached: "API Error: Unable to connect to API (ConnectionRefused)" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m] · retrying: the provider cannot be reached"#,
    ),
    (
        "claude/usage_limit",
        r#"usage limit until 2036-11-12T07:04:36Z: "You've hit your limit · resets Nov 12, 2036, 7:04am (UTC)" · 0+0r+0w>0 $0.0000 · claude-sonnet-5 · limited until 2036-11-12T07:04:36Z"#,
    ),
    (
        "claude/usage_limit_soon",
        r#"usage limit until 2026-11-15T14:30:16Z: "You've hit your limit · resets 2:30pm (UTC)" · 0+0r+0w>0 $0.0000 · claude-sonnet-5 · limited until 2026-11-15T14:30:16Z"#,
    ),
    (
        "claude/usage_limit_with_key",
        r#"the provider is overloaded: "API Error: Request rejected (429) · This request would excee…" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m]"#,
    ),
    (
        "claude/usage_warning",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0042 · context 1200/200000 · claude-sonnet-5 · nearly limited until 2036-11-12T07:04:36Z"#,
    ),
    (
        "claude/wrong_key",
        r#"not logged in, or not permitted: "Invalid API key · Fix external API key" · 0+0r+0w>0 $0.0000 · claude-opus-4-8[1m] · retrying: not logged in, or not permitted"#,
    ),
    ("codex/background_child", r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0000 · 1 tools"#),
    ("codex/bad_flag", r#"failed: "error: unexpected argument '--nonesuch' found" · no session"#),
    ("codex/bad_request", r#"failed: "input: not like this""#),
    (
        "codex/context_full",
        r#"the model's context is full: "Codex ran out of room in the model's context window. Start a…""#,
    ),
    (
        "codex/dropped",
        r#"the provider cannot be reached: "stream disconnected before completion: error sending request" · retrying: the provider cannot be reached"#,
    ),
    (
        "codex/dropped_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0000 · retrying: the provider cannot be reached"#,
    ),
    ("codex/interrupted_in_call", r#"interrupted: """#),
    ("codex/interrupted_in_tool", r#"interrupted: """#),
    ("codex/no_answer", r#"it finished without a word: "" · 1200+0r+0w>40 $0.0000"#),
    ("codex/no_key", r#"not logged in, or not permitted: "Missing environment variable: `OPENAI_API_KEY`.""#),
    (
        "codex/overloaded",
        r#"the provider is overloaded: "Selected model is at capacity. Please try a different model.""#,
    ),
    (
        "codex/parallel_tools",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0000 · 2 tools · tool failed"#,
    ),
    ("codex/quota", r#"usage limit: "Quota exceeded. Check your plan and billing details.""#),
    (
        "codex/rate_limited",
        r#"the provider is overloaded: "exceeded retry limit, last status: 429 Too Many Requests""#,
    ),
    (
        "codex/rate_limited_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0000 · retrying: the provider is overloaded"#,
    ),
    ("codex/read_only", r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0000"#),
    (
        "codex/resume_unknown",
        r#"its session is not known any more: "Error: thread/resume: thread/resume failed: no rollout found…" · no session"#,
    ),
    ("codex/resumed", r#"ok "Still done." · 2400+0r+0w>80 $0.0000"#),
    (
        "codex/server_error",
        r#"the provider is overloaded: "We’re currently experiencing high demand, which may cause te…" · retrying: the provider is overloaded"#,
    ),
    (
        "codex/stalled",
        r#"the provider cannot be reached: "stream disconnected before completion: idle timeout waiting …" · retrying: the provider cannot be reached"#,
    ),
    ("codex/success", r#"ok "Done.\n\n<promise>DONE</promise>" · 3600+2400r+0w>120 $0.0000 · 2 tools"#),
    ("codex/terminated", r#"interrupted: """#),
    (
        "codex/truncated_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0000 · retrying: the provider cannot be reached"#,
    ),
    (
        "codex/truncated_stream",
        r#"the provider cannot be reached: "stream disconnected before completion: stream closed before …" · retrying: the provider cannot be reached"#,
    ),
    (
        "codex/unknown_model",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 1200+0r+0w>40 $0.0000 · notice: Model metadata for `nonesuch` not found. Defaulting to fallb…"#,
    ),
    (
        "codex/usage_limit",
        r#"usage limit until 2036-11-12T07:04:00Z: "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt…""#,
    ),
    (
        "codex/usage_limit_soon",
        r#"usage limit until 2026-11-15T14:31:00Z: "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt…""#,
    ),
    (
        "codex/wrong_key",
        r#"not logged in, or not permitted: "unexpected status 401 Unauthorized: Incorrect API key provid…" · retrying: not logged in, or not permitted"#,
    ),
    (
        "copilot/authentication",
        r#"not logged in, or not permitted: "Authentication failed with provider at http://127.0.0.1:8080…" · retrying: not logged in, or not permitted"#,
    ),
    ("copilot/autopilot_complete", r#"ok "All done. DONE-MARKER" · 2 tools · gpt-5"#),
    ("copilot/autopilot_limit", r#"its own limit on turns or money: "" · gpt-5"#),
    ("copilot/bad_request", r#"failed: "400 messages: not like this""#),
    (
        "copilot/context_full",
        r#"the model's context is full: "400 This model's maximum context length is 128000 tokens. Ho…""#,
    ),
    ("copilot/denied", r#"it was not permitted to act: "" · 1 tools · gpt-5 · tool failed"#),
    (
        "copilot/dropped_once",
        r#"ok "Done.\n\n<promise>DONE</promise>" · gpt-5 · retrying: the provider cannot be reached"#,
    ),
    (
        "copilot/empty",
        r#"it finished without a word: "No response was returned. Send your message again to retry." · gpt-5"#,
    ),
    (
        "copilot/forbidden",
        r#"not logged in, or not permitted: "Authentication failed with provider at http://127.0.0.1:8080…""#,
    ),
    ("copilot/interrupted_in_call", r#"interrupted: "" · no session"#),
    (
        "copilot/network",
        r#"the provider cannot be reached: "Failed to get response from the AI model; retried 5 times (t…" · retrying: the provider cannot be reached"#,
    ),
    (
        "copilot/not_found",
        r#"not logged in, or not permitted: "Model 'gpt-5' not found on provider at http://127.0.0.1:8080…""#,
    ),
    ("copilot/permission_denied", r#"it was not permitted to act: "" · 1 tools · gpt-5 · tool failed"#),
    (
        "copilot/quota",
        r#"usage limit: "Failed to get response from the AI model; retried 5 times (t…" · retrying: the provider is overloaded"#,
    ),
    (
        "copilot/rate_limited",
        r#"the provider is overloaded: "Failed to get response from the AI model; retried 5 times (t…" · retrying: the provider is overloaded"#,
    ),
    ("copilot/resumed", r#"ok "Continued." · gpt-5"#),
    (
        "copilot/server_error",
        r#"the provider is overloaded: "Failed to get response from the AI model; retried 5 times (t…" · retrying: the provider is overloaded"#,
    ),
    (
        "copilot/session_lost",
        r#"its session is not known any more: "Error: No session, task, or name matched '11111111-2222-4333…" · no session"#,
    ),
    ("copilot/success", r#"ok "Done.\n\n<promise>DONE</promise>" · 1 tools · gpt-5"#),
    ("copilot/tool_error", r#"ok "It failed." · 1 tools · gpt-5"#),
    (
        "copilot/truncated_stream",
        r#"the provider cannot be reached: "Failed to get response from the AI model; retried 5 times (t…" · retrying: the provider cannot be reached"#,
    ),
    (
        "copilot/wrong_key",
        r#"not logged in, or not permitted: "Authentication failed with provider at http://127.0.0.1:4000…" · retrying: not logged in, or not permitted"#,
    ),
    (
        "gemini/authentication",
        r#"not logged in, or not permitted: "Incorrect API key provided" · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#,
    ),
    ("gemini/bad_request", r#"failed: "contents: not like this" · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#),
    (
        "gemini/context_full",
        r#"the model's context is full: "This model's maximum context length is 128000 tokens. Howeve…" · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#,
    ),
    (
        "gemini/denied",
        r#"ok "I could not." · 2400+1600r+0w>80 $0.0000 · 1 tools · gemini-2.5-pro · tool failed"#,
    ),
    (
        "gemini/empty",
        r#"it finished without a word: "" · 4800+3200r+0w>160 $0.0000 · gemini-2.5-pro · notice: error: The model returned an empty response with no text or …"#,
    ),
    (
        "gemini/forbidden",
        r#"not logged in, or not permitted: "Permission denied" · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#,
    ),
    ("gemini/interrupted_in_call", r#"its output ends too early: "" · gemini-2.5-pro"#),
    (
        "gemini/network",
        r#"the provider cannot be reached: "Attempt 4 failed. Retrying with backoff... Error: exception …" · gemini-2.5-pro · retrying: the provider cannot be reached"#,
    ),
    (
        "gemini/not_found",
        r#"not logged in, or not permitted: "[API Error: model not found]" · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#,
    ),
    (
        "gemini/permission_denied",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+0r+0w>80 $0.0000 · 1 tools · gemini-2.5-pro · tool failed"#,
    ),
    (
        "gemini/quota",
        r#"usage limit: "You exceeded your current quota, please check your plan and …" · gemini-2.5-pro · retrying: usage limit"#,
    ),
    ("gemini/resumed", r#"ok "Continued." · 1200+800r+0w>40 $0.0000 · gemini-2.5-pro"#),
    (
        "gemini/server_error",
        r#"the provider is overloaded: "Internal error" · gemini-2.5-pro · retrying: the provider is overloaded"#,
    ),
    (
        "gemini/session_lost",
        r#"its session is not known any more: "Error resuming session: No previous sessions found for this …" · no session"#,
    ),
    (
        "gemini/success",
        r#"ok "Done.\n\n<promise>DONE</promise>" · 2400+1600r+0w>80 $0.0000 · 1 tools · gemini-2.5-pro"#,
    ),
    ("gemini/tool_error", r#"ok "It failed." · 2400+1600r+0w>80 $0.0000 · 1 tools · gemini-2.5-pro"#),
    (
        "gemini/truncated_stream",
        r#"its output ends too early: "Model stream ended without a finish reason." · 4800+0r+0w>160 $0.0000 · gemini-2.5-pro · notice: error: Model stream ended without a finish reason."#,
    ),
    (
        "gemini/wrong_key",
        r#"not logged in, or not permitted: "API key not valid." · 0+0r+0w>0 $0.0000 · gemini-2.5-pro"#,
    ),
    (
        "opencode/authentication",
        r#"not logged in, or not permitted: "Incorrect API key provided" · retrying: not logged in, or not permitted"#,
    ),
    ("opencode/bad_request", r#"failed: "Invalid argument" · retrying: failed"#),
    ("opencode/compacted", r#"ok "ok" · 18000+0r+0w>600 $0.0000"#),
    ("opencode/empty", r#"it finished without a word: "" · 1200+800r+0w>40 $0.0000"#),
    ("opencode/forbidden", r#"not logged in, or not permitted: "Permission denied" · retrying: failed"#),
    (
        "opencode/network",
        r#"the provider cannot be reached: "Cannot connect to API: The socket connection was closed unex…""#,
    ),
    (
        "opencode/not_found",
        r#"not logged in, or not permitted: "model not found" · retrying: not logged in, or not permitted"#,
    ),
    (
        "opencode/quota",
        r#"usage limit: "AI_APICallError: You exceeded your current quota, please che…" · no session · retrying: usage limit"#,
    ),
    ("opencode/resumed", r#"ok "Continued." · 1200+800r+0w>40 $0.0000"#),
    (
        "opencode/server_error",
        r#"the provider is overloaded: "AI_APICallError: Internal error" · no session · retrying: failed"#,
    ),
    (
        "opencode/session_lost",
        r#"its session is not known any more: "Error: Session not found" · no session"#,
    ),
    ("opencode/success", r#"ok "Done. DONE-MARKER" · 2400+1600r+0w>80 $0.0000 · 1 tools"#),
    ("opencode/tool_error", r#"ok "It failed." · 2400+1600r+0w>80 $0.0000 · 1 tools"#),
];
