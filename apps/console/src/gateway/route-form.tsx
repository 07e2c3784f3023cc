// The common settings of a route as fields; all others are kept, and edited as JSON.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FieldProblem } from "../api/api.ts";
import { SelectField, TextField } from "../view/controls.tsx";
import { FaultText } from "../view/fault-text.tsx";
import { t } from "../words/words.ts";
import type { Settings } from "./route-versions.ts";

const ACCESS = ["none", "bearer", "workload", "forward", "oidc"] as const;
const ORIGINS = ["redirect", "respond", "files"] as const;

/** Properties of the form. */
interface RouteFormProps {
  settings: Settings;
  problems: readonly FieldProblem[];
  /** Prefix, host and methods name an existing route. */
  isNamed: boolean;
  onChange: (settings: Settings) => void;
}

/** Fields of the common settings. */
export function RouteForm({ settings, problems, isNamed, onChange }: RouteFormProps) {
  const set = (name: string, value: unknown): void => onChange(withMember(settings, name, value));
  const problemOf = (...names: string[]): ComponentChildren => {
    const found = problems.find(({ path }) => names.includes(/^[^.[]*/.exec(path)![0]));
    return found === undefined ? undefined : <FaultText of={found} />;
  };
  const text = (name: string, label: string, extra: { hint?: string; isNumber?: boolean } = {}) => (
    <TextField
      label={label}
      value={textOf(settings[name])}
      isMono
      {...(extra.isNumber === true ? { type: "number" } : {})}
      {...(extra.hint === undefined ? {} : { hint: extra.hint })}
      error={problemOf(name)}
      onInput={(value) => set(name, extra.isNumber === true ? toNumber(value) : value || undefined)}
    />
  );
  const origin = ORIGINS.find((name) => settings[name] !== undefined);
  return (
    <div class="form form-columns">
      {isNamed ? null : (
        <>
          {text("prefix", t("Prefix"))}
          {text("host", t("Host"), { hint: t("empty: all hosts") })}
          <MethodsField settings={settings} error={problemOf("methods")} onChange={set} />
        </>
      )}
      {origin === undefined ? (
        <TargetsField
          settings={settings}
          error={problemOf("target", "targets", "targets_weighted")}
          onChange={onChange}
        />
      ) : (
        <p class="hint">{t("This route answers by {name}; edit it as JSON.", { name: origin })}</p>
      )}
      <SelectField
        label={t("Access")}
        value={accessOf(settings)}
        options={[
          ["", t("default of the gateway")],
          ...ACCESS.map((one) => [one, one === "none" ? t("open to all") : one] as const),
        ]}
        onChange={(type) => set("auth", type === "" ? undefined : { ...authOf(settings), type })}
      />
      {accessOf(settings) === "bearer" && (
        <TextField
          label={t("Required scope")}
          value={textOf(authOf(settings)["required_scope"])}
          isMono
          error={problemOf("auth")}
          onInput={(scope) =>
            set("auth", withMember(authOf(settings), "required_scope", scope || undefined))
          }
        />
      )}
      {text("rate_limit_rpm", t("Requests a minute and address"), { isNumber: true })}
      {text("max_concurrent_requests", t("Concurrent requests"), { isNumber: true })}
      {text("max_body_size", t("Largest body in bytes"), { isNumber: true })}
      {text("response_timeout_ms", t("Timeout of the response in ms"), { isNumber: true })}
      {text("cache_ttl_seconds", t("Cache responses for seconds"), { isNumber: true })}
      <div class="checks">
        <Flag
          name="strip_prefix"
          label={t("Forward the path without the prefix")}
          {...{ settings, set }}
        />
        <Flag name="access_log" label={t("Log each request")} {...{ settings, set }} />
        <Flag
          name="canary_auto_promote"
          label={t("Shift traffic step by step to the last of two targets")}
          {...{ settings, set }}
        />
        {problemOf("canary_auto_promote") !== undefined && (
          <small class="hint hint-bad">{problemOf("canary_auto_promote")}</small>
        )}
      </div>
    </div>
  );
}

function Flag(props: {
  name: string;
  label: string;
  settings: Settings;
  set: (name: string, value: unknown) => void;
}) {
  const { name, label, settings, set } = props;
  return (
    <label class="check-line">
      <input
        type="checkbox"
        checked={settings[name] === true}
        onChange={(event) => set(name, event.currentTarget.checked ? true : undefined)}
      />
      {label}
    </label>
  );
}

function MethodsField(props: {
  settings: Settings;
  error: ComponentChildren;
  onChange: (name: string, value: unknown) => void;
}) {
  const { methods } = props.settings;
  // As it is typed: a comma at the end is no method yet.
  const [text, setText] = useState(Array.isArray(methods) ? methods.join(", ") : "");
  return (
    <TextField
      label={t("Methods")}
      value={text}
      isMono
      hint={t("empty: all methods; GET, POST")}
      error={props.error}
      onInput={(value) => {
        setText(value);
        const names = value.split(/[\s,]+/).filter((name) => name !== "");
        props.onChange("methods", names.length === 0 ? undefined : names);
      }}
    />
  );
}

function TargetsField(props: {
  settings: Settings;
  error: ComponentChildren;
  onChange: (settings: Settings) => void;
}) {
  const [text, setText] = useState(formatTargets(props.settings));
  return (
    <label class="label">
      <span>{t("Targets")}</span>
      <textarea
        class="field mono area"
        rows={3}
        spellcheck={false}
        value={text}
        aria-invalid={props.error === undefined ? undefined : "true"}
        onInput={(event) => {
          setText(event.currentTarget.value);
          props.onChange(withTargets(props.settings, event.currentTarget.value));
        }}
      />
      <small class={props.error === undefined ? "hint" : "hint hint-bad"}>
        {props.error ?? t("One URL a line; a number after it is its weight.")}
      </small>
    </label>
  );
}

function formatTargets({ target, targets, targets_weighted: weighted }: Settings): string {
  if (Array.isArray(weighted)) {
    return (weighted as { url?: unknown; weight?: unknown }[])
      .map(({ url, weight }) => `${String(url)} ${String(weight)}`)
      .join("\n");
  }
  if (Array.isArray(targets)) return targets.join("\n");
  return typeof target === "string" ? target : "";
}

function withTargets(settings: Settings, text: string): Settings {
  const lines = text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([url]) => url !== "");
  const { target: _one, targets: _several, targets_weighted: _weighted, ...rest } = settings;
  if (lines.some(([, weight]) => weight !== undefined)) {
    const list = lines.map(([url, weight = "1"]) => ({ url, weight: toNumber(weight) }));
    return { ...rest, targets_weighted: list };
  }
  const urls = lines.map(([url]) => url);
  return urls.length === 1 ? { ...rest, target: urls[0] } : { ...rest, targets: urls };
}

function authOf({ auth }: Settings): Settings {
  return typeof auth === "object" && auth !== null ? (auth as Settings) : {};
}

function accessOf(settings: Settings): string {
  return textOf(authOf(settings)["type"]);
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

// A text that is no number is kept: the gateway names it.
function toNumber(text: string): unknown {
  if (text === "") return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

function withMember(settings: Settings, name: string, value: unknown): Settings {
  if (value !== undefined) return { ...settings, [name]: value };
  const { [name]: _removed, ...rest } = settings;
  return rest;
}
