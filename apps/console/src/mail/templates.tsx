// Templates: an editor with a live preview, and versions.
import { useEffect, useState } from "preact/hooks";
import { segment, withQuery, type ApiFailure } from "../api/api.ts";
import { formatDate, formatMoment } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, Section, Segments, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading, Problem } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const PREVIEW_MS = 400;

interface TemplateItem {
  name: string;
  locale: string;
  version: number;
  updated_at: string;
}

interface Template extends TemplateItem {
  subject: string;
  html: string | null;
  text: string | null;
  variables: string[];
}

/** All templates. */
export function TemplatesPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Templates") }]);
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(
    "templates",
    async () =>
      (
        await callService<{ templates: TemplateItem[] }>(
          "notify",
          withQuery("/templates", { limit: 100 }),
        )
      ).templates,
  );
  return (
    <Split>
      <Title
        actions={
          <Action onClick={() => setCreating(true)} kind="primary" icon="plus">
            {t("New template")}
          </Action>
        }
      >
        {t("Templates")}
      </Title>
      <Loading of={loaded}>
        {(templates) =>
          templates.length === 0 ? (
            <Empty title={t("No templates yet")} />
          ) : (
            <Table
              label={t("Templates")}
              rows={templates}
              idOf={({ name, locale }) => `${name} ${locale}`}
              onSelect={({ name, locale }) => navigate(templatePath(name, locale))}
              columns={[
                {
                  title: t("Name"),
                  render: ({ name, locale }) => (
                    <a class="mono" href={href(templatePath(name, locale))}>
                      {name}
                    </a>
                  ),
                },
                { title: t("Language"), kind: "w-s", render: ({ locale }) => locale || "–" },
                {
                  title: t("Version"),
                  kind: "w-s",
                  isNumber: true,
                  render: ({ version }) => version,
                },
                {
                  title: t("Changed"),
                  kind: "w-m wide-only",
                  isNumber: true,
                  render: ({ updated_at: at }) => formatDate(at),
                },
              ]}
            />
          )
        }
      </Loading>
      {isCreating && <CreateTemplate onClose={() => setCreating(false)} />}
    </Split>
  );
}

function templatePath(name: string, locale: string): string {
  return withQuery(`/mail/templates/${encodeURIComponent(name)}`, { locale });
}

function CreateTemplate({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={t("New template")}
      submit={t("Create")}
      onClose={onClose}
      onSubmit={async () => {
        const json = {
          name,
          subject: "Hello {{name}}",
          text: "Hello {{name}}",
          html: "<p>Hello {{name}}</p>",
        };
        await callService("notify", "/templates", { method: "POST", json });
        navigate(templatePath(name, ""));
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} isMono required />
    </FormDialog>
  );
}

/** The editor of one template. */
export function TemplatePage({ name }: { name: string }) {
  useCrumbs([
    { label: t("Mail"), to: "/mail/inbox" },
    { label: t("Templates"), to: "/mail/templates" },
    { label: name, isName: true },
  ]);
  const locale = queryValue("locale");
  const path = `/templates/${segment(name)}`;
  const loaded = useLoad(`${name} ${locale}`, () =>
    callService<Template>("notify", withQuery(path, { locale })),
  );
  return (
    <Loading of={loaded}>
      {(template) => (
        <Editor
          key={`${template.name} ${template.version}`}
          template={template}
          path={path}
          onSaved={() => void loaded.reload()}
        />
      )}
    </Loading>
  );
}

function Editor(props: { template: Template; path: string; onSaved: () => void }) {
  const { template, path } = props;
  const [subject, setSubject] = useState(template.subject);
  const [html, setHtml] = useState(template.html ?? "");
  const [text, setText] = useState(template.text ?? "");
  const [isDeleting, setDeleting] = useState(false);
  const part = queryValue("part") === "text" ? "text" : "html";
  const isChanged =
    subject !== template.subject ||
    html !== (template.html ?? "") ||
    text !== (template.text ?? "");
  const save = (): void => {
    const json = {
      name: template.name,
      ...(template.locale === "" ? {} : { locale: template.locale }),
      subject,
      html: html === "" ? null : html,
      text: text === "" ? null : text,
    };
    void attempt(
      async () => {
        await callService("notify", "/templates", { method: "POST", json });
        props.onSaved();
      },
      t("Saved as version {n}.", { n: template.version + 1 }),
    );
  };
  useCommands([{ label: t("Save"), icon: "down", run: save }]);
  return (
    <Split
      isWide
      pane={
        <Preview template={template} path={path} isChanged={isChanged} onRestored={props.onSaved} />
      }
    >
      <Title
        isName
        tags={<span class="tag">{t("version {n}", { n: template.version })}</span>}
        actions={
          <>
            <Action onClick={() => setDeleting(true)} kind="bad">
              {t("Delete…")}
            </Action>
            <Action
              onClick={save}
              kind="primary"
              blocked={isChanged ? undefined : t("Nothing was changed")}
            >
              {t("Save")}
            </Action>
          </>
        }
      >
        {template.name}
      </Title>
      <div class="sec form">
        <TextField label={t("Subject")} value={subject} onInput={setSubject} />
        <Segments
          label={t("Part")}
          value={part}
          options={[
            ["html", "HTML"],
            ["text", t("Text")],
          ]}
          onChange={(value) => setQuery({ part: value === "html" ? undefined : value })}
        />
        {part === "html" ? (
          <AreaField label="HTML" value={html} rows={22} onInput={setHtml} />
        ) : (
          <AreaField label={t("Text")} value={text} rows={22} onInput={setText} />
        )}
      </div>
      {isDeleting && (
        <ConfirmDialog
          title={t("Delete {name}", { name: template.name })}
          name={template.name}
          submit={t("Delete")}
          onClose={() => setDeleting(false)}
          onSubmit={async () => {
            await callService("notify", path, { method: "DELETE" });
            navigate("/mail/templates");
          }}
        >
          <p>{t("All languages and {n} versions will be gone.", { n: template.version })}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

interface Rendered {
  subject?: string;
  html?: string | null;
  text?: string | null;
}

interface Version {
  version: number;
  active: boolean;
  created_at: string;
}

function Preview(props: {
  template: Template;
  path: string;
  isChanged: boolean;
  onRestored: () => void;
}) {
  const { template, path } = props;
  const [variables, setVariables] = useState(
    JSON.stringify(Object.fromEntries(template.variables.map((name) => [name, name])), null, 2),
  );
  const [rendered, setRendered] = useState<Rendered | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  useEffect(() => {
    const timer = setTimeout(() => {
      const run = async (): Promise<void> => {
        const json = {
          variables: JSON.parse(variables) as unknown,
          ...(template.locale === "" ? {} : { locale: template.locale }),
        };
        setRendered(
          await callService<Rendered>("notify", `${path}/preview`, { method: "POST", json }),
        );
        setFailure(undefined);
      };
      run().catch((error: unknown) => setFailure(toFailure(error)));
    }, PREVIEW_MS);
    return () => clearTimeout(timer);
  }, [variables, template.version]);
  const versions = useLoad(
    `versions ${template.version}`,
    async () =>
      (
        await callService<{ versions: Version[] }>(
          "notify",
          withQuery(`${path}/versions`, { locale: template.locale }),
        )
      ).versions,
  );
  return (
    <>
      <Section
        title={t("Preview")}
        note={
          props.isChanged
            ? t("of the saved version; save to see changes")
            : t("of the saved version")
        }
      >
        {failure !== undefined && <Problem failure={failure} />}
        {rendered !== undefined && (
          <>
            <p>
              <b>{rendered.subject}</b>
            </p>
            {/* As source: the page may not create documents from strings. */}
            <pre class="code" tabIndex={0} role="region" aria-label="HTML">
              {rendered.html ?? ""}
            </pre>
            <pre class="mail-text">{rendered.text ?? ""}</pre>
          </>
        )}
      </Section>
      <Section title={t("Variables")}>
        <AreaField label={t("Values as JSON")} value={variables} rows={6} onInput={setVariables} />
      </Section>
      <Section title={t("Versions")}>
        <Loading of={versions}>
          {(list) => (
            <div class="lines">
              {list.map(({ version, active, created_at: at }) => (
                <div key={version} class="line">
                  <span class="mono">{version}</span>
                  <span>{formatMoment(at)}</span>
                  {active ? (
                    <span class="tag tag-ok">{t("current")}</span>
                  ) : (
                    <Action
                      onClick={() =>
                        void attempt(
                          async () => {
                            const json = {
                              version,
                              ...(template.locale === "" ? {} : { locale: template.locale }),
                            };
                            await callService("notify", `${path}/restore`, {
                              method: "POST",
                              json,
                            });
                            props.onRestored();
                          },
                          t("Version {n} was restored.", { n: version }),
                        )
                      }
                    >
                      {t("Restore")}
                    </Action>
                  )}
                </div>
              ))}
            </div>
          )}
        </Loading>
      </Section>
    </>
  );
}
