// Tables of templates and their versions.
import type { Migration } from "@platform/kernel/db";

/** A language variant of a template; `locale` is "" for the default. */
interface TemplateRow {
  name: string;
  locale: string;
  /** The active version. */
  version: number;
  updated_at: number;
}

/** A version of a variant. Versions are never changed. */
export interface TemplateVersionRow {
  name: string;
  locale: string;
  version: number;
  subject: string;
  html: string | null;
  text: string | null;
  created_at: number;
}

/** Tables of templates. */
export interface TemplateTables {
  notify_templates: TemplateRow;
  notify_template_versions: TemplateVersionRow;
}

/** Migrations of these tables. */
export const TEMPLATE_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-templates",
    statements: (t) => [
      `create table notify_templates (
        name ${t.text} not null, locale ${t.text} not null, version ${t.integer} not null, updated_at ${t.integer} not null,
        primary key (name, locale))`,
      `create table notify_template_versions (
        name ${t.text} not null, locale ${t.text} not null, version ${t.integer} not null, subject ${t.text} not null,
        html ${t.text}, text ${t.text}, created_at ${t.integer} not null,
        primary key (name, locale, version))`,
    ],
  },
];
