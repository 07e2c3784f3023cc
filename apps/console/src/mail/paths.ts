// Addresses of mail's pages.
import { segment, withQuery } from "../api/api.ts";

/** Path of the page of a message. */
export function messagePath(id: string): string {
  return `/mail/messages/${segment(id)}`;
}

/** Path of the editor of a template. */
export function templatePath(name: string, locale: string): string {
  return withQuery(`/mail/templates/${segment(name)}`, { locale });
}
