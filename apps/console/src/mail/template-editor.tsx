// The editor of a template: subject, HTML and text with problems at their lines, a live preview, versions, conflicts.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { ApiFailure, segment, withQuery } from "../api/api.ts";
import { navigate, queryValue, setQuery } from "../router/router.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, Menu, Segments, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { CodeEditor } from "../view/code-editor.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { MANAGE } from "./message.ts";
import { ContentDiff } from "./template-diff.tsx";
import { TemplatePreview, usePreview } from "./template-preview.tsx";
import { sampleVariables } from "./template-sample.ts";
import { PARTS, toDraft, type Part, type Template } from "./template.ts";
import { TemplateVersions } from "./template-versions.tsx";

/** The page of one template. */
export function TemplatePage({ name }: { name: string }) {
  useCrumbs([
    { label: t("Mail"), to: "/mail/inbox" },
    { label: t("Templates"), to: "/mail/templates" },
    { label: name, isName: true },
  ]);
  const locale = queryValue("locale");
  const path = `/templates/${segment(name)}`;
  const read = (): Promise<Template> =>
    callService<Template>("notify", withQuery(path, { locale }));
  const loaded = useLoad(`${name} ${locale}`, read);
  return (
    <>
      {loaded.data.value === undefined && <h1 class="hidden">{name}</h1>}
      <Loading of={loaded} whole={{ to: "/mail/templates", label: t("All templates") }}>
        {(template) => (
          <Editor key={`${name} ${locale}`} loaded={template} path={path} read={read} />
        )}
      </Loading>
    </>
  );
}

function Editor(props: { loaded: Template; path: string; read: () => Promise<Template> }) {
  const { path, read } = props;
  // The version that the draft is based on.
  const [base, setBase] = useState(props.loaded);
  const [draft, setDraft] = useState(toDraft(props.loaded));
  const [variables, setVariables] = useState(() => sampleVariables(props.loaded));
  const [conflict, setConflict] = useState<Template | undefined>(undefined);
  const [open, setOpen] = useState<"delete" | "test" | undefined>(undefined);
  const part: Part = queryValue("part") === "text" ? "text" : "html";
  const isChanged = PARTS.some((one) => draft[one] !== toDraft(base)[one]);
  const release = useUnsaved(isChanged, ["locale"]);
  const isEmpty = draft.html === "" && draft.text === "";
  const preview = usePreview({ path, locale: base.locale, draft, variables });
  const show = (template: Template): void => {
    setBase(template);
    setDraft(toDraft(template));
  };
  const write = async (version: number): Promise<void> => {
    const { version: saved } = await callService<Answer<"notify", "POST /templates">>(
      "notify",
      "/templates",
      {
        method: "POST",
        headers: { "If-Match": `"${version}"` },
        json: {
          name: base.name,
          ...(base.locale === "" ? {} : { locale: base.locale }),
          subject: draft.subject,
          html: draft.html === "" ? null : draft.html,
          text: draft.text === "" ? null : draft.text,
        },
      },
    );
    setBase({ ...base, ...draft, version: saved });
    setConflict(undefined);
    say(t("Saved as version {n}.", { n: saved }));
  };
  const save = (): void =>
    void attempt(async () => {
      try {
        await write(base.version);
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.status !== 412) throw error;
        setConflict(await read());
      }
    });
  const blocked = isEmpty
    ? t("HTML or text is required")
    : isChanged
      ? undefined
      : t("Nothing was changed");
  useCommands([
    {
      label: t("Save"),
      icon: "down",
      needs: MANAGE,
      run: () => {
        if (blocked === undefined) save();
      },
    },
  ]);
  const errors = preview.errors;
  return (
    <Split
      isWide
      pane={
        <>
          <TemplatePreview preview={preview} variables={variables} onVariables={setVariables} />
          <TemplateVersions
            template={base}
            draft={draft}
            path={path}
            onRestored={async () => show(await read())}
          />
        </>
      }
    >
      <Title
        isName
        tags={
          <>
            <span class="tag mono">{t("version {n}", { n: base.version })}</span>
            {base.locale !== "" && <span class="tag mono">{base.locale}</span>}
            {isChanged && <span class="tag tag-warn">{t("not saved")}</span>}
          </>
        }
        actions={
          <>
            <Menu
              label={t("More actions")}
              items={[
                { label: t("Send a test…"), onClick: () => setOpen("test"), needs: MANAGE },
                {
                  label: t("Delete…"),
                  onClick: () => setOpen("delete"),
                  isBad: true,
                  needs: MANAGE,
                },
              ]}
            />
            <Action onClick={save} needs={MANAGE} kind="primary" blocked={blocked}>
              {t("Save")}
            </Action>
          </>
        }
      >
        {base.name}
      </Title>
      <div class="sec form">
        <TextField
          label={t("Subject")}
          value={draft.subject}
          onInput={(subject) => setDraft({ ...draft, subject })}
          error={errors.subject[0]?.message}
        />
        <div class="mail-controls">
          <Segments<Part>
            label={t("Part")}
            value={part}
            options={[
              ["html", errors.html.length > 0 ? `HTML ■` : "HTML"],
              ["text", errors.text.length > 0 ? `${t("Text")} ■` : t("Text")],
            ]}
            onChange={(value) => setQuery({ part: value === "html" ? undefined : value })}
          />
        </div>
        {part === "html" ? (
          <CodeEditor
            key="html"
            label="HTML"
            language="html"
            value={draft.html}
            onInput={(html) => setDraft({ ...draft, html })}
            problems={errors.html}
            minLines={18}
            maxLines={40}
          />
        ) : (
          <CodeEditor
            key="text"
            label={t("Text")}
            language="text"
            value={draft.text}
            onInput={(text) => setDraft({ ...draft, text })}
            problems={errors.text}
            minLines={18}
            maxLines={40}
          />
        )}
        {part === "text" && draft.text === "" && (
          <p class="hint">{t("Empty: the text is made from the HTML.")}</p>
        )}
      </div>
      {open === "test" && (
        <TestDialog
          path={path}
          variables={variables}
          base={base}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}", { name: base.name })}
          name={base.name}
          submit={t("Delete")}
          onClose={() => setOpen(undefined)}
          onSubmit={async () => {
            await callService("notify", path, { method: "DELETE" });
            release();
            navigate("/mail/templates");
          }}
        >
          <p>{t("All languages and {n} versions will be gone.", { n: base.version })}</p>
        </ConfirmDialog>
      )}
      {conflict !== undefined && (
        <FormDialog
          title={t("Another version was saved")}
          submit={t("Save mine as version {n}", { n: conflict.version + 1 })}
          isWide
          isDestructive
          onClose={() => setConflict(undefined)}
          onSubmit={() => write(conflict.version)}
        >
          <p>
            {t(
              "You edited version {mine}; version {theirs} is active now. The difference from theirs to yours:",
              {
                mine: base.version,
                theirs: conflict.version,
              },
            )}
          </p>
          <ContentDiff before={toDraft(conflict)} after={draft} />
          <p>
            <Action
              onClick={() => {
                show(conflict);
                setConflict(undefined);
              }}
            >
              {t("Take theirs, drop my changes")}
            </Action>
          </p>
        </FormDialog>
      )}
    </Split>
  );
}

function TestDialog(props: {
  path: string;
  variables: string;
  base: Template;
  onClose: () => void;
}) {
  const [to, setTo] = useState("");
  return (
    <FormDialog
      title={t("Send a test")}
      submit={t("Send")}
      onClose={props.onClose}
      onSubmit={async () => {
        const { status } = await callService<Answer<"notify", "POST /templates/{name}/test">>(
          "notify",
          `${props.path}/test`,
          {
            method: "POST",
            json: {
              to,
              variables: JSON.parse(props.variables) as unknown,
              ...(props.base.locale === "" ? {} : { locale: props.base.locale }),
            },
          },
        );
        say(t("Sent: {status}", { status }));
      }}
    >
      <p>
        {t(
          "The saved version {n} with the values of the preview, and [Test] in front of its subject.",
          {
            n: props.base.version,
          },
        )}
      </p>
      <TextField label={t("Address")} value={to} onInput={setTo} type="email" required />
    </FormDialog>
  );
}
