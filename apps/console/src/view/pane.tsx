// The two parts of a page: the sheet, and the right pane with its selection. On phones the pane is a page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../words/words.ts";
import { Icon } from "./icon.tsx";

/** A sheet, with a pane on its right if there is a selection. */
export function Split(props: {
  children: ComponentChildren;
  pane?: ComponentChildren;
  /** Closes the pane on phones; without it the pane is shown below the sheet. */
  onClosePane?: (() => void) | undefined;
  isWide?: boolean | undefined;
}) {
  const { pane, onClosePane } = props;
  const hasPane = pane !== undefined && pane !== null && pane !== false;
  const classes = ["split"];
  if (hasPane) classes.push("has-pane");
  if (props.isWide === true) classes.push("wide-pane");
  if (onClosePane !== undefined) classes.push("pane-page");
  return (
    <div class={classes.join(" ")}>
      <div class="sheet">{props.children}</div>
      {hasPane && <Pane onClose={onClosePane}>{pane}</Pane>}
    </div>
  );
}

function Pane(props: { children: ComponentChildren; onClose?: (() => void) | undefined }) {
  const ref = useRef<HTMLElement>(null);
  const { onClose } = props;
  useEffect(() => {
    if (onClose === undefined) return undefined;
    const close = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || document.querySelector("dialog[open]") !== null) return;
      onClose();
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  });
  return (
    <aside ref={ref} class="pane" aria-label={t("Details")} tabIndex={0}>
      {onClose !== undefined && (
        <button type="button" class="pane-back" onClick={onClose}>
          <Icon name="back" /> {t("Back")}
        </button>
      )}
      {props.children}
    </aside>
  );
}

/** The title line of a page with its actions. */
export function Title(props: {
  children: ComponentChildren;
  tags?: ComponentChildren;
  actions?: ComponentChildren;
  isName?: boolean;
}) {
  return (
    <div class="title">
      <h1
        class={props.isName === true ? "mono" : ""}
        title={typeof props.children === "string" ? props.children : undefined}
      >
        {props.children}
      </h1>
      {props.tags}
      <span class="grow" />
      <span class="acts">{props.actions}</span>
    </div>
  );
}

/** An empty list: what it would contain, and how to get there. */
export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{props.title}</b>
      {props.children !== undefined && <div>{props.children}</div>}
    </div>
  );
}
