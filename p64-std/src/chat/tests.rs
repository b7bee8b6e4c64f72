//! Real templates' constructs, with the texts that Python's Jinja gives for them.

use super::*;

fn render(source: &str, messages: &[Message]) -> Result<String, ChatError> {
    ChatTemplate::new(source, "<bos>", "<eos>")?.render(messages)
}

fn turns(turns: &[(&str, &str)]) -> Vec<Message> {
    turns.iter().map(|(role, content)| Message::new(role, content)).collect()
}

/// The ChatML form with a default system message.
const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + \
message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}\
{{ '<|im_start|>assistant\n' }}{% endif %}";

#[test]
fn chatml() {
    let text = render(CHATML, &turns(&[("user", "Hi")])).expect("renders");
    let system = "<|im_start|>system\nBe kind.<|im_end|>\n";
    assert_eq!(text, format!("{system}<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"));
    let text = render(CHATML, &turns(&[("system", "S"), ("user", "Hi")])).expect("renders");
    assert_eq!(text, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

/// Turns that must alternate, a system message folded into the first, `trim`, a renamed role.
const ALTERNATING: &str = "{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set prefix = \"\" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception(\"Roles must alternate user/assistant/user/assistant/...\") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (prefix if loop.first else \"\") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- else -%}
        {{ raise_exception(\"Invalid content type\") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}";

#[test]
fn alternating_turns() {
    let text = render(ALTERNATING, &turns(&[("system", "S"), ("user", " a "), ("assistant", "b"), ("user", "c")]));
    assert_eq!(
        text.expect("renders"),
        "<bos><start_of_turn>user\nS\n\na<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n<start_of_turn>user\n\
         c<end_of_turn>\n<start_of_turn>model\n"
    );
    let error = render(ALTERNATING, &turns(&[("assistant", "b")])).expect_err("refused").to_string();
    assert!(
        error.ends_with("refuses the conversation: Roles must alternate user/assistant/user/assistant/..."),
        "{error}"
    );
}

#[test]
fn methods_of_python() {
    let source = "{%- set ns = namespace(last='') -%}{%- for m in messages -%}{%- if m.content.startswith('a') -%}\
                  {%- set ns.last = m.content.strip().split('-')[-1] -%}{%- endif -%}{%- endfor -%}\
                  {{ ns.last.upper() }} {{ messages[0].get('tools', 'none') }} {{ eos_token }}";
    assert_eq!(render(source, &turns(&[("user", "a-b-c "), ("user", "x")])).expect("renders"), "C none <eos>");
}

/// `trim_blocks` and `lstrip_blocks`, as `transformers` sets them.
#[test]
fn blocks_take_their_line_with_them() {
    let source = "A\n    {% if true %}\nB\n    {% endif %}\nC";
    assert_eq!(render(source, &[]).expect("renders"), "A\nB\nC");
}

#[test]
fn templates_cannot_run_forever_and_errors_are_one_line() {
    let source = "{% for a in range(10000) %}{% for b in range(10000) %}{{ a }}{% endfor %}{% endfor %}";
    assert!(matches!(render(source, &[]), Err(ChatError::Template(_))));
    let error = render("{% if %}", &[]).expect_err("no template").to_string();
    assert!(error.starts_with("the model's chat template cannot be used: ") && !error.contains('\n'), "{error}");
}
