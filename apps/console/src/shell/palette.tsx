// The palette: commands of the page, places, and names that were seen.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ServiceId } from "@platform/console/contract";
import { hasTenants } from "../messaging/broker.ts";
import { topicPath } from "../messaging/paths.ts";
import { navigate } from "../router/router.ts";
import { callService, may } from "../session/session.ts";
import { commands } from "../stage/stage.ts";
import { Icon, type IconName } from "../view/icon.tsx";
import { highlight } from "../view/json.tsx";
import { t } from "../words/words.ts";
import { availableAreas } from "./rail.tsx";

const SHOWN_MAX = 8;
const NAMES_MAX = 500;

/** True while the palette is shown. */
export const isPaletteOpen = signal(false);

interface Choice {
  group: string;
  label: string;
  note?: string;
  icon: IconName;
  isName?: boolean;
  key?: string;
  /** Path below `/ui`. */
  to?: string;
  run?: () => void;
  isBlocked?: boolean;
}

/** The palette, if it is open. */
export function Palette() {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const ref = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [names, setNames] = useState<readonly Choice[]>([]);
  useEffect(() => {
    if (ref.current?.open === false) ref.current.showModal();
    void loadNames().then(setNames);
    const dialog = ref.current;
    // The backdrop is the dialog itself; its content covers the rest.
    const closeOutside = (event: MouseEvent): void => {
      if (event.target === dialog) isPaletteOpen.value = false;
    };
    dialog?.addEventListener("click", closeOutside);
    return () => dialog?.removeEventListener("click", closeOutside);
  }, []);
  const found = search(text, names);
  const chosen = Math.min(at, found.length - 1);
  const close = (): void => {
    isPaletteOpen.value = false;
  };
  const open = (choice: Choice | undefined, isNewTab: boolean): void => {
    if (choice === undefined || choice.isBlocked === true) return;
    close();
    if (choice.to !== undefined && isNewTab) window.open(`/ui${choice.to}`, "_blank", "noopener");
    else if (choice.to !== undefined) navigate(choice.to);
    else choice.run?.();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") open(found[chosen], event.metaKey || event.ctrlKey);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label={t("Go to or do…")}
      onClose={close}
      onCancel={close}
    >
      <div class="palette-in">
        <Icon name="search" size={17} />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
          aria-label={t("Go to or do…")}
          placeholder={t("Go to or do…")}
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>esc</kbd>
      </div>
      <div id="palette-list" role="listbox" aria-label={t("Results")}>
        {found.map((choice, index) => (
          <div key={`${choice.group}${choice.label}${choice.note ?? ""}`}>
            {found[index - 1]?.group !== choice.group && (
              <div class="palette-group">{choice.group}</div>
            )}
            {/* The input keeps the focus; its keys choose. */}
            {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus */}
            <div
              id={`palette-${index}`}
              role="option"
              aria-selected={index === chosen}
              aria-disabled={choice.isBlocked === true ? "true" : undefined}
              class="palette-option"
              onClick={(event) => open(choice, event.metaKey || event.ctrlKey)}
            >
              <Icon name={choice.icon} size={15} />
              <span class={choice.isName === true ? "mono" : ""}>
                {highlight(choice.label, text)}
              </span>
              <span class="palette-note">
                {choice.note}
                {choice.key !== undefined && <kbd>{choice.key}</kbd>}
              </span>
            </div>
          </div>
        ))}
        {found.length === 0 && <p class="palette-none">{t("No result")}</p>}
      </div>
      <footer class="palette-foot">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> {t("choose")}
        </span>
        <span>
          <kbd>↵</kbd> {t("open")}
        </span>
        <span class="grow" />
        <span>
          <kbd>?</kbd> {t("all keys")}
        </span>
      </footer>
    </dialog>
  );
}

function search(text: string, names: readonly Choice[]): Choice[] {
  const here = commands.value.map((command): Choice => {
    const isBlocked = command.needs !== undefined && !may(command.needs);
    return {
      group: t("Here"),
      label: command.label,
      icon: (command.icon ?? "next") as IconName,
      run: command.run,
      isBlocked,
      ...(command.key === undefined ? {} : { key: command.key }),
      ...(isBlocked ? { note: t("Requires the permission {name}", { name: command.needs! }) } : {}),
    };
  });
  const places: Choice[] = [
    { group: t("Go to"), label: t("Overview"), icon: "overview", to: "/" },
    ...availableAreas().flatMap((area) =>
      area.sections.map((section) => ({
        group: t("Go to"),
        label: section.label === area.label ? area.label : `${area.label} · ${section.label}`,
        icon: area.id,
        to: section.to,
      })),
    ),
    { group: t("Go to"), label: t("Access"), icon: "access", to: "/access" },
    { group: t("Go to"), label: t("Settings"), icon: "settings", to: "/settings" },
  ];
  const wanted = text.trim().toLowerCase();
  const matches = ({ label }: Choice): boolean => label.toLowerCase().includes(wanted);
  const shownNames = wanted === "" ? [] : names.filter(matches).slice(0, SHOWN_MAX);
  return [
    ...here.filter(matches).slice(0, SHOWN_MAX),
    ...shownNames,
    ...places.filter(matches).slice(0, wanted === "" ? 20 : SHOWN_MAX),
  ];
}

/** Names of topics, routes, buckets and users; services that refuse or are down contribute none. */
async function loadNames(): Promise<Choice[]> {
  const available = new Set(availableAreas().map(({ id }) => id));
  const read = async (
    id: ServiceId,
    path: string,
    list: (answer: never) => Omit<Choice, "group" | "icon" | "isName">[],
  ): Promise<Choice[]> => {
    if (!available.has(id)) return [];
    const answer = await callService<never>(id, path).catch(() => undefined);
    if (answer === undefined) return [];
    return list(answer)
      .slice(0, NAMES_MAX)
      .map((choice) => ({ ...choice, group: t("Go to"), icon: id, isName: true }));
  };
  const lists = await Promise.all([
    read(
      "pulse",
      may("pulse:admin") ? "/topics?tenant=*" : "/topics",
      ({ topics }: { topics: { name: string; tenant?: string }[] }) => {
        const isShared = hasTenants(topics.map(({ tenant = "" }) => tenant));
        return topics.map(({ name, tenant }) => ({
          label: name,
          note: isShared && tenant ? t("topic of {tenant}", { tenant }) : t("topic"),
          to: topicPath(name, "tail", isShared ? tenant : undefined),
        }));
      },
    ),
    read("gate", "/routes", (answer: { prefix: string; host?: string }[]) =>
      answer.map(({ prefix, host = "" }) => ({
        label: host + prefix,
        note: t("route"),
        to: `/gateway/routes/${encodeURIComponent(host + prefix)}`,
      })),
    ),
    read("vault", "/usage?limit=200", (answer: { items: { bucket: string }[] }) =>
      answer.items.map(({ bucket }) => ({
        label: bucket,
        note: t("bucket"),
        to: `/storage/buckets/${encodeURIComponent(bucket)}`,
      })),
    ),
    read("auth", "/users?limit=100", (answer: { users: { id: string; username: string }[] }) =>
      answer.users.map(({ id, username }) => ({
        label: username,
        note: t("user"),
        to: `/identity/users?sel=${encodeURIComponent(id)}`,
      })),
    ),
  ]);
  return lists.flat();
}
