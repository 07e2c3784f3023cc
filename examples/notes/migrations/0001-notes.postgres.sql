create table notes (
  id bigint generated always as identity primary key,
  owner text not null,
  email text,
  text text not null,
  file_key text,
  file_name text,
  created_at bigint not null,
  remind_at bigint,
  reminded_at bigint
);
create index notes_owner on notes (owner, id);
create index notes_due on notes (remind_at) where reminded_at is null;
