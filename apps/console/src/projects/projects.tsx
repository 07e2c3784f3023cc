// The projects of this platform, and the page of one.
import type { Answer } from "../contract/answer.ts";
import { segment } from "../api/api.ts";
import { formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { DatabaseContents } from "./database-contents.tsx";
import { dataPath, projectPath, sqlPath } from "./paths.ts";
import { ProjectLinks } from "./project-links.tsx";

const REFRESH_MS = 5_000;

type Project = Answer<"runtime", "GET /projects">["items"][number];
type DatabasesAnswer = Answer<"runtime", "GET /projects/{project}/databases">;
type Database = DatabasesAnswer["items"][number];

const KINDS: Readonly<Record<Project["state"], StateKind>> = {
  running: "ok",
  starting: "warn",
  restarting: "bad",
  stopping: "warn",
  stopped: "off",
};

async function listProjects(): Promise<Project[]> {
  const answer = await callService<Answer<"runtime", "GET /projects">>("runtime", "/projects");
  return answer.items;
}

export function ProjectsPage() {
  useCrumbs([{ label: t("Projects") }]);
  const loaded = useLoad("projects", listProjects, REFRESH_MS);
  return (
    <Split>
      <h1 class="hidden">{t("Projects")}</h1>
      <Loading of={loaded}>
        {(projects) =>
          projects.length === 0 ? (
            <Empty title={t("No project runs")}>
              <p>
                <code>platform init shop</code>
              </p>
              <p>{t("Then platform up in its folder: it joins this platform.")}</p>
            </Empty>
          ) : (
            <ProjectTable projects={projects} />
          )
        }
      </Loading>
    </Split>
  );
}

function ProjectTable({ projects }: { projects: readonly Project[] }) {
  return (
    <>
      <Table
        label={t("Projects")}
        rows={projects}
        idOf={({ name }) => name}
        onSelect={({ name }) => navigate(projectPath(name))}
        isTall
        columns={[
          {
            title: t("Project"),
            render: ({ name, url }) => (
              <span class="two">
                <a href={href(projectPath(name))}>{name}</a>
                <small class="mono">{url}</small>
              </span>
            ),
          },
          {
            title: t("State"),
            kind: "w-l",
            render: ({ state }) => <State kind={KINDS[state]}>{describeState(state)}</State>,
          },
          {
            title: t("Runs"),
            kind: "w-l wide-only",
            render: ({ kind }) => describeKind(kind),
          },
          {
            title: t("Folder"),
            kind: "mono wide-only",
            render: ({ folder }) => <span title={folder}>{folder}</span>,
          },
        ]}
      />
      <p class="hint list-end">
        {t("Another one: platform init, then platform up in its folder.")}
      </p>
    </>
  );
}

function describeKind(kind: Project["kind"]): string {
  const words: Record<Project["kind"], string> = {
    own: t("with the platform"),
    kept: t("with the platform"),
    joined: t("until its terminal leaves"),
  };
  return words[kind];
}

/** The page of a project. */
export function ProjectPage({ name }: { name: string }) {
  useCrumbs([{ label: t("Projects"), to: "/projects" }, { label: name }]);
  const projects = useLoad("projects", listProjects, REFRESH_MS);
  const project = projects.data.value?.find((one) => one.name === name);
  const databases = useLoad(`databases ${name}`, async () =>
    callService<DatabasesAnswer>("runtime", `/projects/${segment(name)}/databases`),
  );
  return (
    <Split pane={<ProjectLinks name={name} />}>
      <Title
        isName
        tags={
          project === undefined ? undefined : (
            <State kind={KINDS[project.state]}>{describeState(project.state)}</State>
          )
        }
      >
        {name}
      </Title>
      {project !== undefined && <About project={project} />}
      <Section title={t("Databases")}>
        <Loading of={databases}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={t("No database")}>
                <p>{t("database notes in the project's main file declares one.")}</p>
              </Empty>
            ) : (
              <DatabaseTable project={name} items={items} />
            )
          }
        </Loading>
      </Section>
      <DatabaseContents
        project={name}
        databases={(databases.data.value?.items ?? []).map((one) => one.name)}
      />
    </Split>
  );
}

function About({ project }: { project: Project }) {
  return (
    <Section title={t("Project")}>
      <Facts>
        <FactRow term={t("Address")} isMono>
          <Address url={project.url} />
        </FactRow>
        <FactRow term={t("Folder")} isMono>
          <span class="wrap">{project.folder}</span>
        </FactRow>
        <FactRow term={t("Version of the package")} isMono>
          {project.package_version ?? "–"}
        </FactRow>
        <Runs name={project.name} />
        <FactRow term={t("Last reload")}>
          {project.reloaded_at === null ? "–" : formatMoment(project.reloaded_at)}
        </FactRow>
        <FactRow term={t("Rules at the gateway")}>{formatNumber(project.rules.length)}</FactRow>
      </Facts>
      <Failure title={t("Last failure")} text={project.detail} />
      <Failure title={t("The newest version does not start")} text={project.reload_failure} />
      {[...project.rules, ...project.cuts].map((rule) => (
        <p key={rule} class="mono i2 wrap">
          {rule}
        </p>
      ))}
    </Section>
  );
}

function Failure({ title, text }: { title: string; text: string }) {
  if (text === "") return null;
  return (
    <>
      <p class="bad">{title}</p>
      <pre class="code-frame" tabIndex={0}>
        {text}
      </pre>
    </>
  );
}

/** Since when its process runs, and how often it has ended unexpectedly. */
function Runs({ name }: { name: string }) {
  const loaded = useLoad(
    `process ${name}`,
    async () => callService<Answer<"runtime", "GET /services">>("runtime", "/services"),
    REFRESH_MS,
  );
  const service = loaded.data.value?.items.find(({ id }) => id === name);
  if (service === undefined) return null;
  const { started_at: started, restarts } = service;
  return (
    <>
      <FactRow term={t("Started")}>{started === null ? "–" : formatMoment(started)}</FactRow>
      <FactRow term={t("Restarts")}>{formatNumber(restarts)}</FactRow>
    </>
  );
}

/** The address of a project, as a link if it is one. */
function Address({ url }: { url: string }) {
  return isOrigin(url) ? <a href={url}>{url}</a> : <span class="wrap">{url}</span>;
}

function isOrigin(url: string): boolean {
  return URL.canParse(url) && /^https?:/.test(url) && new URL(url).origin === url;
}

function DatabaseTable({ project, items }: { project: string; items: readonly Database[] }) {
  return (
    <Table
      label={t("Databases")}
      rows={items}
      idOf={({ name }) => name}
      onSelect={({ name }) => navigate(dataPath(project, name))}
      isTall
      columns={[
        {
          title: t("Database"),
          render: ({ name, kind }) => (
            <span class="two">
              <a href={href(dataPath(project, name))}>{name}</a>
              <small>
                {kind === "sqlite" ? "SQLite" : "PostgreSQL"}
                {" · "}
                <a class="link" href={href(sqlPath(project, name))}>
                  {t("SQL")}
                </a>
              </small>
            </span>
          ),
        },
        {
          title: t("Size"),
          kind: "w-s",
          isNumber: true,
          render: ({ bytes }) => formatBytes(bytes),
        },
        {
          title: t("Migrations"),
          kind: "w-l wide-only",
          render: ({ migrations: { applied, waiting } }) =>
            waiting !== null && waiting.length > 0
              ? t("{n} applied, {m} waiting", { n: applied.length, m: waiting.length })
              : t("{n} applied", { n: applied.length }),
        },
      ]}
    />
  );
}

function describeState(state: Project["state"]): string {
  const words: Record<Project["state"], string> = {
    running: t("Running"),
    starting: t("Starting"),
    restarting: t("Failed, restarting"),
    stopping: t("Stopping"),
    stopped: t("Stopped"),
  };
  return words[state];
}
