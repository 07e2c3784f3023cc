// The rail: services with a figure each, and the sections of the open one. On phones a bar of five.
import { useRef } from "preact/hooks";
import { feeds, isDown } from "../live/live.ts";
import { href, path } from "../router/router.ts";
import { config, hasFeature, logout, services, session } from "../session/session.ts";
import { formatInitials, formatShort } from "../format/format.ts";
import { leaveUnlessUnsaved } from "../router/unsaved.ts";
import { attempt, runWaiting } from "../view/toast.tsx";
import { Brand, Icon, ServiceMark } from "../view/icon.tsx";
import { StateMark } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { listAreas, type Area } from "./navigation.ts";

/** Areas of the services in this console. */
export function availableAreas(): Area[] {
  return listAreas()
    .filter(({ id }) => services.value.some((service) => service.id === id))
    .map((area) => ({
      ...area,
      sections: area.sections.filter(
        ({ feature }) => feature === undefined || hasFeature(area.id, feature),
      ),
    }))
    .filter(({ sections }) => sections.length > 0);
}

/** Name of this installation: its host. */
export function placeName(): string {
  return location.hostname;
}

/** The rail on the left. */
export function Rail() {
  const current = path.value;
  return (
    <nav class="rail" aria-label={t("Console")}>
      <div class="brand">
        <Brand />
        <b>platform</b>
        <span class="env">{placeName()}</span>
      </div>
      <div class="nav">
        <a href={href("/")} aria-current={current === "/" ? "page" : undefined}>
          <Icon name="overview" />
          {t("Overview")}
        </a>
        <div class="gap" />
        {availableAreas().map((area) => (
          <AreaLinks key={area.root} area={area} current={current} />
        ))}
      </div>
      <div class="foot nav">
        <a href={href("/access")} aria-current={current.startsWith("/access") ? "page" : undefined}>
          <Icon name="access" />
          {t("Access")}
        </a>
        <a href={href("/settings")} aria-current={current === "/settings" ? "page" : undefined}>
          <Icon name="settings" />
          {t("Settings")}
        </a>
        <Who />
      </div>
    </nav>
  );
}

function AreaLinks({ area, current }: { area: Area; current: string }) {
  const isOpen = current === area.root || current.startsWith(`${area.root}/`);
  // Figures and alarms of the runtime stand at its own area.
  const feed = area.page === undefined ? feeds.value.get(area.id) : undefined;
  const first = area.sections[0]!.to;
  const alarms = feed?.attention.filter(({ level }) => level === "critical").length ?? 0;
  return (
    <div class={`hue hue-${area.id}`}>
      <a
        href={href(first)}
        class={isOpen ? "open" : ""}
        aria-current={current === first && area.sections.length === 1 ? "page" : undefined}
      >
        {area.page === undefined ? <ServiceMark id={area.id} /> : <Icon name={area.page} />}
        {area.label}
        {alarms > 0 && <span class="n">{alarms}</span>}
        {alarms === 0 && feed?.isUp === true && (
          <span class="fig">{describeRate(feed.values["requests"])}</span>
        )}
        {isDown(feed) && (feed?.downSince ?? 0) > 0 && (
          <span class="fig" title={t("down")}>
            <StateMark kind="bad" />
            <span class="hidden">{t("down")}</span>
          </span>
        )}
      </a>
      {isOpen && area.sections.length > 1 && (
        <div class="sub">
          {area.sections.map(({ to, label }) => (
            <a
              key={to}
              href={href(to)}
              aria-current={current === to || current.startsWith(`${to}/`) ? "page" : undefined}
            >
              {label}
            </a>
          ))}
        </div>
      )}
    </div>
  );
}

function describeRate(value: number | null | undefined): string {
  return value === null || value === undefined || value === 0 ? "" : `${formatShort(value)}/s`;
}

function Who() {
  const current = session.value;
  if (!current) return null;
  const name = current.method === "loopback" ? t("Operator") : current.user.name;
  const role =
    current.method === "loopback"
      ? t("on this machine")
      : current.is_admin
        ? t("administrator")
        : current.roles.join(", ");
  return (
    <div class="who">
      <span class="ava" aria-hidden="true">
        {formatInitials(name)}
      </span>
      <span class="grow">
        {name}
        <span class="i3" title={role}>
          {role}
        </span>
      </span>
      {current.method !== "loopback" && (
        <button
          type="button"
          class="icon-btn"
          aria-label={t("Sign out")}
          title={t("Sign out")}
          onClick={() =>
            leaveUnlessUnsaved(() => {
              void runWaiting().then(() => attempt(logout));
            })
          }
        >
          <Icon name="out" size={14} />
        </button>
      )}
    </div>
  );
}

/** The bar of phones: overview, three services, and the rest. */
export function PhoneBar() {
  const ref = useRef<HTMLDivElement>(null);
  const current = path.value;
  const areas = availableAreas();
  const first = chooseFirst(areas);
  const close = (): void => ref.current?.hidePopover();
  return (
    <nav class="phone-bar" aria-label={t("Console")}>
      <a href={href("/")} aria-current={current === "/" ? "page" : undefined}>
        <Icon name="overview" size={19} />
        {t("Overview")}
      </a>
      {first.map((area) => (
        <a
          key={area.id}
          href={href(area.sections[0]!.to)}
          aria-current={current.startsWith(area.root) ? "page" : undefined}
        >
          <Icon name={area.id} size={19} />
          {area.label}
        </a>
      ))}
      <button type="button" popovertarget="more-menu">
        <Icon name="more" size={19} />
        {t("More")}
      </button>
      <div
        ref={ref}
        id="more-menu"
        class="more-menu"
        popover="auto"
        role="group"
        aria-label={t("More")}
      >
        {areas.map((area) => (
          <div key={area.root}>
            <b>
              <ServiceMark id={area.id} /> {area.label}
            </b>
            {area.sections.map(({ to, label }) => (
              <a key={to} href={href(to)} onClick={close}>
                {label}
              </a>
            ))}
          </div>
        ))}
        <a href={href("/access")} onClick={close}>
          {t("Access")}
        </a>
        <a href={href("/settings")} onClick={close}>
          {t("Settings")}
        </a>
        <Who />
      </div>
    </nav>
  );
}

function chooseFirst(areas: readonly Area[]): Area[] {
  const order = ["gate", "pulse", "vault", "auth", "notify", "tunnel", "runtime"];
  return areas
    .filter(({ page }) => page === undefined)
    .toSorted((one, other) => order.indexOf(one.id) - order.indexOf(other.id))
    .slice(0, 3);
}

/** Says that the session belongs to everybody on this machine. */
export function LoopbackBanner() {
  if (session.value?.method !== "loopback" || config.value?.mode !== "service") return null;
  return (
    <p class="banner">
      {t("Every program on this machine is the operator: this service has no credentials.")}
    </p>
  );
}
