// The palette: commands of the page, places, and names that were seen.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { navigate } from "../router/router.ts";
import { runWhenMounted } from "../stage/stage.ts";
import { Icon } from "../view/icon.tsx";
import { highlight } from "../view/json.tsx";
import { t } from "../words/words.ts";
import { loadNames, search, type Choice } from "./choices.ts";

/** True while the palette is shown. */
export const isPaletteOpen = signal(false);

/** The palette, if it is open. */
export function Palette() {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const ref = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [names, setNames] = useState<readonly Choice[]>([]);
  // Before the paint: what is typed next belongs to the palette.
  useLayoutEffect(() => {
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
    else if (choice.to !== undefined) {
      navigate(choice.to);
      if (choice.command !== undefined) runWhenMounted(choice.command, choice.to);
    } else choice.run?.();
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
