// Notes: each user's own, with files, live in all windows, and with reminders by mail.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { auth, events, files, HttpError, mail, messages, objects, redirect, reply } from "@platform/service";
import { readNote } from "./read-note.ts";

server { port: 3000 }
database notes { migrations: "./migrations" }

interface Note {
  id: number;
  owner: string;
  email: string | null;
  text: string;
  file_key: string | null;
  file_name: string | null;
  remind_at: number | null;
}

const CHANGES = "notes.changes";
const LIST_MAX = 200;
const STORAGE = process.env["AWS_ENDPOINT_URL_S3"] ?? "";
const PAGE_HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Cache-Control": "no-cache",
  "Content-Security-Policy": `default-src 'self'; connect-src 'self' ${STORAGE}; base-uri 'none'; frame-ancestors 'none'`,
};
const assets = files(new URL("./public", import.meta.url));

// The page
export route GET / {
  return reply(await readFile(new URL("./page.html", import.meta.url)), { headers: PAGE_HEADERS });
}
export route GET /assets/* (req) { return assets(req); }

// Sign-in
export route GET /sign-in { return auth.signIn(); }
export route GET /callback (req) { return auth.finishSignIn(req); }
export route POST /sign-out (req) {
  await auth.requireUser(req);
  return auth.signOut();
}
export route GET /api/me (req) { return auth.requireUser(req); }

// Notes
export route GET /api/notes (req) {
  const { id } = await auth.requireUser(req);
  const rows = await notes.all<Note>`
    select * from notes where owner = ${id} order by id desc limit ${LIST_MAX}`;
  return rows.map(show);
}

export route POST /api/notes (req) {
  const user = await auth.requireUser(req);
  const { text, file, remindAt } = readNote(req.body, user.id);
  if (remindAt !== null && user.email === undefined) {
    throw new HttpError(422, "Your account has no email address for the reminder.");
  }
  const note = await notes.one<Note>`
    insert into notes (owner, email, text, file_key, file_name, created_at, remind_at)
    values (${user.id}, ${user.email ?? null}, ${text}, ${file?.key ?? null}, ${file?.name ?? null}, ${Date.now()}, ${remindAt})
    returning *`;
  await messages.publish(CHANGES, { owner: user.id, added: show(note!) });
  return reply(show(note!), { status: 201 });
}

export route DELETE /api/notes/:id (req) {
  const note = await findNote(req);
  await notes.run`delete from notes where id = ${note.id}`;
  if (note.file_key !== null) await objects.delete(note.file_key);
  await messages.publish(CHANGES, { owner: note.owner, removed: note.id });
}

// Files: the browser sends them straight to storage.
export route POST /api/uploads (req) {
  const { id } = await auth.requireUser(req);
  const key = `${id}/${randomUUID()}`;
  return { key, url: await objects.uploadUrl(key) };
}
export route GET /api/notes/:id/file (req) {
  const { file_key: key, file_name: name } = await findNote(req);
  if (key === null) throw new HttpError(404, "The note has no file.");
  return redirect(await objects.downloadUrl(key, { saveAs: name ?? "file" }));
}

// Live: changes of the user's notes, from every window and every replica.
export route GET /api/events (req) {
  const { id } = await auth.requireUser(req);
  return events(async function* (signal) {
    for await (const message of messages.subscribe(CHANGES, { signal })) {
      const { owner, ...change } = message.json() as { owner: string };
      if (owner === id) yield { data: change };
    }
  });
}

// Reminders: one replica runs this, and a repetition after a crash sends no second mail.
every 5s {
  const failures: unknown[] = [];
  const due = await notes.all<Note>`
    select * from notes where reminded_at is null and remind_at <= ${Date.now()} order by remind_at limit 50`;
  for (const { id, email, text } of due) {
    try {
      const subject = `Reminder: ${text.slice(0, 60)}`;
      await mail.send({ to: email!, subject, text }, { idempotencyKey: `reminder-${id}` });
      await notes.run`update notes set reminded_at = ${Date.now()} where id = ${id}`;
    } catch (error) {
      failures.push(error);
      await notes.run`update notes set remind_at = ${Date.now() + 60_000} where id = ${id}`;
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "reminders were not sent; each is tried again in a minute");
}

async function findNote(req: Parameters<typeof auth.user>[0] & { params: { id: string } }): Promise<Note> {
  const user = await auth.requireUser(req);
  const id = /^\d{1,15}$/.test(req.params.id) ? Number(req.params.id) : 0;
  const note = await notes.one<Note>`select * from notes where id = ${id} and owner = ${user.id}`;
  if (note === undefined) throw new HttpError(404, "No such note.");
  return note;
}

function show({ id, text, file_name: file, remind_at: remindAt }: Note) {
  return { id, text, file, remindAt };
}
