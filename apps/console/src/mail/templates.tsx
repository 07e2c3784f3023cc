// All templates, and new ones.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatDate } from "../format/format.ts";
import { href, navigate, queryValue } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { MANAGE } from "./message.ts";
import { templatePath } from "./paths.ts";

export function TemplatesPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Templates") }]);
  const [isCreating, setCreating] = useState(false);
  const cursor = queryValue("cursor");
  const loaded = useLoad(`templates ${cursor}`, () =>
    callService<Answer<"notify", "GET /templates">>(
      "notify",
      withQuery("/templates", { limit: 100, cursor }),
    ),
  );
  useCommands([
    {
      label: t("New template"),
      key: "n",
      icon: "plus",
      needs: MANAGE,
      run: () => setCreating(true),
    },
  ]);
  return (
    <Split>
      <Title
        actions={
          <Action onClick={() => setCreating(true)} needs={MANAGE} kind="primary" icon="plus">
            {t("New template")}
          </Action>
        }
      >
        {t("Templates")}
      </Title>
      <Loading of={loaded}>
        {({ templates, next_cursor: next }) =>
          templates.length === 0 ? (
            <Empty title={t("No templates yet")} />
          ) : (
            <>
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
              <NextPage cursor={next} />
            </>
          )
        }
      </Loading>
      {isCreating && <CreateTemplate onClose={() => setCreating(false)} />}
    </Split>
  );
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
        await callService("notify", "/templates", {
          method: "POST",
          json,
          headers: { "If-None-Match": "*" },
        });
        navigate(templatePath(name, ""));
      }}
    >
      <TextField label={t("Name")} value={name} onInput={setName} isMono required />
    </FormDialog>
  );
}
