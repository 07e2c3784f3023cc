// Buttons, fields, tabs, segments and menus.
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef } from "preact/hooks";
import type { FieldProblem } from "../api/api.ts";
import { may } from "../session/session.ts";
import { href, path } from "../router/router.ts";
import { t } from "../words/words.ts";
import { FaultText } from "./fault-text.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** Properties of an action. */
interface ActionProps {
  children: ComponentChildren;
  onClick: () => void;
  /** Permission without which the button is disabled, with the reason. */
  needs?: string | undefined;
  /** Any other reason for which it is disabled. */
  blocked?: string | undefined;
  kind?: "primary" | "quiet" | "bad" | undefined;
  icon?: IconName | undefined;
  isSmall?: boolean | undefined;
  shortcut?: string | undefined;
}

/** A button. Without permission it stays visible, disabled, and says why. */
export function Action(props: ActionProps) {
  const { children, onClick, needs, blocked, kind, icon, isSmall = true, shortcut } = props;
  const reasonId = useId();
  const reason =
    needs !== undefined && !may(needs)
      ? t("Requires the permission {name}", { name: needs })
      : blocked;
  const classes = ["btn"];
  if (isSmall) classes.push("sm");
  if (kind === "primary") classes.push("pri");
  if (kind === "quiet") classes.push("q");
  if (kind === "bad") classes.push("bad");
  return (
    <button
      type="button"
      class={classes.join(" ")}
      aria-disabled={reason === undefined ? undefined : "true"}
      aria-describedby={reason === undefined ? undefined : reasonId}
      title={reason}
      onClick={() => {
        if (reason === undefined) onClick();
      }}
    >
      {icon !== undefined && <Icon name={icon} size={13} />}
      {children}
      {shortcut !== undefined && <kbd>{shortcut}</kbd>}
      {reason !== undefined && (
        <span id={reasonId} class="hidden">
          {reason}
        </span>
      )}
    </button>
  );
}

/** A button with an icon alone. Disabled, it says why. */
export function IconAction(props: {
  icon: IconName;
  label: string;
  title: string;
  blocked: string | undefined;
  onClick: () => void;
}) {
  const { icon, label, title, blocked, onClick } = props;
  const reasonId = useId();
  return (
    <button
      type="button"
      class="icon-btn"
      aria-label={label}
      aria-disabled={blocked === undefined ? undefined : "true"}
      aria-describedby={blocked === undefined ? undefined : reasonId}
      title={blocked ?? title}
      onClick={() => {
        if (blocked === undefined) onClick();
      }}
    >
      <Icon name={icon} size={13} />
      {blocked !== undefined && (
        <span id={reasonId} class="hidden">
          {blocked}
        </span>
      )}
    </button>
  );
}

/** Problems of the values of the form around a field. */
export const FormProblems = createContext<readonly FieldProblem[]>([]);

/** A labelled input. */
export function TextField(props: {
  label: string;
  /** Path of the value in the body of the form's request, whose problem is shown here. */
  name?: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "number" | "email" | "date";
  isMono?: boolean;
  placeholder?: string;
  required?: boolean;
  hint?: string;
  error?: ComponentChildren;
  autocomplete?: string;
}) {
  const hintId = useId();
  const refused = useContext(FormProblems).find(({ path }) => path === props.name);
  const error = props.error ?? (refused === undefined ? undefined : <FaultText of={refused} />);
  const note = error ?? props.hint;
  return (
    <label class="label">
      <span>{props.label}</span>
      <input
        class={props.isMono === true ? "field mono" : "field"}
        {...({ type: props.type ?? "text" } as { type: "text" })}
        value={props.value}
        placeholder={props.placeholder}
        required={props.required}
        autocomplete={props.autocomplete ?? "off"}
        spellcheck={false}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={note === undefined ? undefined : hintId}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      {note !== undefined && (
        <small id={hintId} class={error === undefined ? "hint" : "hint hint-bad"}>
          {note}
        </small>
      )}
    </label>
  );
}

/** A labelled text area. */
export function AreaField(props: {
  label: string;
  value: string;
  rows?: number;
  onInput: (value: string) => void;
}) {
  return (
    <label class="label">
      <span>{props.label}</span>
      <textarea
        class="field mono area"
        rows={props.rows ?? 6}
        spellcheck={false}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  );
}

/** A labelled select. */
export function SelectField(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}) {
  return (
    <label class="label">
      <span>{props.label}</span>
      <select
        class="field"
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        <Options of={props.options} />
      </select>
    </label>
  );
}

/** The options of a `select`. */
export function Options(props: { of: readonly (readonly [value: string, label: string])[] }) {
  return props.of.map(([value, label]) => (
    <option key={value} value={value}>
      {label}
    </option>
  ));
}

/** The filter of a list; `/` focuses it. */
export function FilterField(props: {
  value: string;
  onInput: (value: string) => void;
  label: string;
  isMono?: boolean;
  note?: string | undefined;
  icon?: IconName;
}) {
  return (
    <label class="filter">
      <Icon name={props.icon ?? "filter"} size={13} />
      <span class="hidden">{props.label}</span>
      <input
        data-filter
        class={props.isMono === true ? "mono" : ""}
        type="search"
        value={props.value}
        placeholder={props.label}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      {props.note !== undefined && <span class="note">{props.note}</span>}
    </label>
  );
}

/** A choice of a few values. */
export function Segments<Value extends string>(props: {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, label: string])[];
  onChange: (value: Value) => void;
}) {
  return (
    <div class="seg" role="group" aria-label={props.label}>
      {props.options.map(([value, label]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** Tabs are links: each has an address. */
export function Tabs(props: {
  label: string;
  tabs: readonly { to: string; label: string; count?: number | undefined }[];
}) {
  const ref = useRef<HTMLElement>(null);
  // On phones the bar is wider than the window.
  useEffect(() => {
    const open = ref.current?.querySelector("[aria-current]");
    open?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [path.value]);
  useEffect(() => {
    const bar = ref.current;
    if (bar === null) return undefined;
    const mark = (): void => {
      const rest = bar.scrollWidth - bar.clientWidth - bar.scrollLeft;
      const ends = [bar.scrollLeft > 1 ? "start" : "", rest > 1 ? "end" : ""];
      bar.dataset["more"] = ends.filter((end) => end !== "").join(" ");
    };
    const resize = new ResizeObserver(mark);
    resize.observe(bar);
    bar.addEventListener("scroll", mark, { passive: true });
    return () => {
      resize.disconnect();
      bar.removeEventListener("scroll", mark);
    };
  }, []);
  return (
    <nav ref={ref} class="tabs" aria-label={props.label}>
      {props.tabs.map(({ to, label, count }) => (
        <a key={to} href={href(to)} aria-current={path.value === to ? "page" : undefined}>
          {label}
          {count !== undefined && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}

/** A menu of less frequent actions. */
export function Menu(props: {
  label: string;
  items: readonly { label: string; onClick: () => void; isBad?: boolean; needs?: string }[];
}) {
  const id = useId().replaceAll(":", "");
  const ref = useRef<HTMLDivElement>(null);
  return (
    <span class="menu-host">
      <button type="button" class="btn sm" popovertarget={id} aria-label={props.label}>
        <Icon name="dots" size={14} />
      </button>
      <div ref={ref} id={id} class="menu" popover="auto" role="group" aria-label={props.label}>
        {props.items.map(({ label, onClick, isBad = false, needs }) => {
          const isAllowed = needs === undefined || may(needs);
          return (
            <button
              key={label}
              type="button"
              class={isBad ? "menu-item bad" : "menu-item"}
              aria-disabled={isAllowed ? undefined : "true"}
              title={
                isAllowed ? undefined : t("Requires the permission {name}", { name: needs ?? "" })
              }
              onClick={() => {
                if (!isAllowed) return;
                ref.current?.hidePopover();
                onClick();
              }}
            >
              {label}
            </button>
          );
        })}
      </div>
    </span>
  );
}

/** Terms and their values. */
export function Facts(props: { children: ComponentChildren }) {
  return <dl class="kv">{props.children}</dl>;
}

/** One term and its value. */
export function FactRow(props: { term: string; children: ComponentChildren; isMono?: boolean }) {
  return (
    <>
      <dt>{props.term}</dt>
      <dd class={props.isMono === true ? "mono" : ""}>{props.children}</dd>
    </>
  );
}

/** A section of a pane. */
export function Section(props: {
  title: string;
  note?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="sec">
      <div class="h2">
        <h2>{props.title}</h2>
        {props.note !== undefined && <small>{props.note}</small>}
        {props.action !== undefined && <span class="x">{props.action}</span>}
      </div>
      {props.children}
    </section>
  );
}
