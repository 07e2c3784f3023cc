// Two versions of a route, side by side with their origin: members of either are chosen, or all of one.
import { useState } from "preact/hooks";
import { href } from "../router/router.ts";
import { Action } from "../view/controls.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { StateMark } from "../view/state.tsx";
import { t } from "../words/words.ts";
import {
  compareVersions,
  mergeVersions,
  type Difference,
  type Settings,
  type Side,
} from "./route-versions.ts";

/** Shows what both have changed; resolves to the settings to continue with. */
export function RouteConflictView(props: {
  base: Settings;
  mine: Settings;
  theirs: Settings;
  onResolve: (settings: Settings) => void;
}) {
  const { base, mine, theirs, onResolve } = props;
  const differences = compareVersions(base, mine, theirs);
  const [chosen, setChosen] = useState<ReadonlyMap<string, Side>>(new Map());
  const sideOf = ({ name, changedBy }: Difference): Side | undefined =>
    chosen.get(name) ?? changedBy;
  const open = differences.filter((one) => sideOf(one) === undefined).length;
  return (
    <section class="sec conflict" aria-labelledby="conflict-title">
      <div class="note-line" role="alert">
        <StateMark kind="warn" />
        <div>
          <h2 id="conflict-title">{t("The route was changed meanwhile")}</h2>
          <p>{t("Choose the value of each setting. Nothing is saved before you save.")}</p>
        </div>
      </div>
      {differences.map((one) => (
        <fieldset key={one.name} class="versions">
          <legend class="mono">{one.name}</legend>
          <Version title={t("Before")} value={one.base} />
          <VersionChoice
            name={one.name}
            title={t("Theirs")}
            value={one.theirs}
            isChosen={sideOf(one) === "theirs"}
            onChoose={() => setChosen(new Map(chosen).set(one.name, "theirs"))}
          />
          <VersionChoice
            name={one.name}
            title={t("Mine")}
            value={one.mine}
            isChosen={sideOf(one) === "mine"}
            onChoose={() => setChosen(new Map(chosen).set(one.name, "mine"))}
          />
        </fieldset>
      ))}
      <div class="acts">
        <Action
          kind="primary"
          blocked={open === 0 ? undefined : t("Settings not chosen yet: {n}", { n: open })}
          onClick={() =>
            onResolve(mergeVersions(theirs, differences, (one) => sideOf(one) ?? "theirs"))
          }
        >
          {t("Use the chosen values")}
        </Action>
        <Action onClick={() => onResolve(mergeVersions(theirs, differences, () => "mine"))}>
          {t("Use all of mine")}
        </Action>
        <Action onClick={() => onResolve(theirs)}>{t("Use all of theirs")}</Action>
      </div>
    </section>
  );
}

/** The route is gone: the settings that were edited can become a new one. */
export function RouteDeleted(props: {
  name: string;
  onContinue: () => void;
  onDiscard: () => void;
}) {
  const { name, onContinue, onDiscard } = props;
  return (
    <Split>
      <Title isName>{name}</Title>
      <Empty title={t("The route was deleted meanwhile")}>
        <p>{t("Your settings can become a new route.")}</p>
        <div class="acts">
          <Action kind="primary" onClick={onContinue}>
            {t("Continue with a new route")}
          </Action>
          <a class="btn sm" href={href("/gateway/routes")} onClick={onDiscard}>
            {t("Discard")}
          </a>
        </div>
      </Empty>
    </Split>
  );
}

function Version({ title, value }: { title: string; value: unknown }) {
  return (
    <div class="version">
      <span>{title}</span>
      <Value value={value} />
    </div>
  );
}

function VersionChoice(props: {
  name: string;
  title: string;
  value: unknown;
  isChosen: boolean;
  onChoose: () => void;
}) {
  return (
    <label class="version">
      <span>
        <input
          type="radio"
          name={`version ${props.name}`}
          checked={props.isChosen}
          onChange={props.onChoose}
        />
        {props.title}
      </span>
      <Value value={props.value} />
    </label>
  );
}

function Value({ value }: { value: unknown }) {
  if (value === undefined) return <i class="i3">{t("not set")}</i>;
  return <code>{JSON.stringify(value, null, 1)}</code>;
}
