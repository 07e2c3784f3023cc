// Versions of a template: what they change, and restoring one.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatMoment } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Action, Section } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { MANAGE } from "./message.ts";
import { ContentDiff } from "./template-diff.tsx";
import { toDraft, type Draft, type Template } from "./template.ts";

/** A version with its content. */
type TemplateVersion = Answer<"notify", "GET /templates/{name}/versions/{version}">;

/** Versions, newest first. */
export function TemplateVersions(props: {
  template: Template;
  draft: Draft;
  path: string;
  onRestored: () => Promise<void>;
}) {
  const { template, draft, path } = props;
  const { locale } = template;
  const [compared, setCompared] = useState<TemplateVersion | undefined>(undefined);
  const versions = useLoad(
    `versions ${path} ${locale} ${template.version}`,
    async () =>
      (
        await callService<Answer<"notify", "GET /templates/{name}/versions">>(
          "notify",
          withQuery(`${path}/versions`, { locale }),
        )
      ).versions,
  );
  return (
    <Section title={t("Versions")} note={t("the last 50 are kept")}>
      <Loading of={versions}>
        {(list) => (
          <div class="lines">
            {list.map(({ version, active, created_at: at }) => (
              <div key={version} class="line mail-version">
                <span class="mono">{version}</span>
                <span>{formatMoment(at)}</span>
                {active ? (
                  <span class="tag tag-ok">{t("current")}</span>
                ) : (
                  <CompareAction
                    version={version}
                    load={() =>
                      callService<TemplateVersion>(
                        "notify",
                        withQuery(`${path}/versions/${version}`, { locale }),
                      )
                    }
                    onLoaded={setCompared}
                  />
                )}
              </div>
            ))}
          </div>
        )}
      </Loading>
      {compared !== undefined && (
        <FormDialog
          title={t("Version {n}", { n: compared.version })}
          submit={t("Restore version {n}", { n: compared.version })}
          isWide
          onClose={() => setCompared(undefined)}
          onSubmit={async () => {
            await callService("notify", `${path}/restore`, {
              method: "POST",
              json: { version: compared.version, ...(locale === "" ? {} : { locale }) },
            });
            say(t("Version {n} was restored.", { n: compared.version }));
            await props.onRestored();
          }}
        >
          <p>
            {t(
              "The difference from the text in the editor to this version. Restoring it makes a new version and replaces what is in the editor.",
            )}
          </p>
          <ContentDiff before={draft} after={toDraft(compared)} />
        </FormDialog>
      )}
    </Section>
  );
}

function CompareAction(props: {
  version: number;
  load: () => Promise<TemplateVersion>;
  onLoaded: (template: TemplateVersion) => void;
}) {
  return (
    <Action
      needs={MANAGE}
      onClick={() =>
        void attempt(async () => {
          props.onLoaded(await props.load());
        })
      }
    >
      {t("Compare…")}
      <span class="hidden"> {props.version}</span>
    </Action>
  );
}
