// The head: path, state of the live feed, and the palette's button.
import { useEffect, useState } from "preact/hooks";
import { liveState, retryLive } from "../live/live.ts";
import { href } from "../router/router.ts";
import { crumbs, type Crumb } from "../stage/stage.ts";
import { Brand, Icon } from "../view/icon.tsx";
import { t } from "../words/words.ts";
import { isPaletteOpen } from "./palette.tsx";
import { placeName } from "./rail.tsx";

const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The head of each page. */
export function Head() {
  const list: readonly Crumb[] = crumbs.value;
  const parent = list.length > 1 ? list.at(-2) : undefined;
  return (
    <header class="top">
      <span class="phone-only">
        {parent?.to === undefined ? (
          <Brand />
        ) : (
          <a class="icon-btn" href={href(parent.to)} aria-label={t("Back")}>
            <Icon name="back" />
          </a>
        )}
      </span>
      <nav class="crumb" aria-label={t("Path")}>
        {list.length === 1 && <span class="crumb-part">{placeName()}</span>}
        {list.map((crumb, index) => (
          <CrumbPart key={crumb.label} crumb={crumb} isLast={index === list.length - 1} />
        ))}
      </nav>
      <span class="grow" />
      <Live />
      <button
        type="button"
        class="jump"
        onClick={() => {
          isPaletteOpen.value = true;
        }}
      >
        <Icon name="search" size={14} />
        <span>{t("Go to or do…")}</span>
        <kbd aria-hidden="true">{IS_APPLE ? "⌘ K" : "Ctrl K"}</kbd>
      </button>
    </header>
  );
}

function CrumbPart({ crumb, isLast }: { crumb: Crumb; isLast: boolean }) {
  const { label, to, isName = false } = crumb;
  const kind = isName ? "crumb-part mono" : "crumb-part";
  if (isLast) {
    return (
      <b class={kind} aria-current="page" title={label}>
        {label}
      </b>
    );
  }
  return to === undefined ? (
    <span class={kind}>{label}</span>
  ) : (
    <a class={kind} href={href(to)}>
      {label}
    </a>
  );
}

function Live() {
  const state = liveState.value;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state.kind !== "lost") return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [state.kind]);
  if (state.kind === "live") return <span class="livedot">{t("live")}</span>;
  if (state.kind === "refused") return <span class="livedot waiting">{t("No access")}</span>;
  if (state.kind === "connecting") return <span class="livedot waiting">{t("connecting")}</span>;
  const seconds = Math.max(0, Math.ceil((state.retryAt - now) / 1000));
  return (
    <button type="button" class="livedot broken" onClick={retryLive}>
      {t("lost, retry in {n} s", { n: seconds })}
    </button>
  );
}
