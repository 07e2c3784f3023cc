// The logo of a client, which identity shows on its pages for sign-in and consent.
import type { Answer } from "../contract/answer.ts";
import { useRef } from "preact/hooks";
import { ApiFailure, segment } from "../api/api.ts";
import { formatBytes } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Action, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

/** Limits of the service. */
const BYTES_MAX = 65_536;
const PIXELS_MAX = 1_024;
const WRITE = "clients:write";

type Logo = Answer<"auth", "GET /auth/clients/{id}/logo">;

/** The logo with its actions. */
export function ClientLogo({ id, name }: { id: string; name: string }) {
  const path = `/auth/clients/${segment(id)}/logo`;
  const input = useRef<HTMLInputElement>(null);
  const loaded = useLoad(id, () => readLogo(path));
  const upload = (file: File): void => {
    void attempt(async () => {
      if (file.size > BYTES_MAX) {
        throw new Error(
          t("The picture has {size}; {max} is the limit.", {
            size: formatBytes(file.size),
            max: formatBytes(BYTES_MAX),
          }),
        );
      }
      await callService("auth", path, { method: "PUT", json: { image: await toBase64(file) } });
      await loaded.reload();
    }, t("Saved."));
  };
  const remove = (): void => {
    void attempt(async () => {
      await callService("auth", path, { method: "DELETE" });
      await loaded.reload();
    }, t("Removed."));
  };
  return (
    <Section title={t("Logo")}>
      <Loading of={loaded}>
        {({ logo }) => (
          <>
            {logo === undefined ? (
              <p class="hint">
                {t("None. PNG or JPEG, at most {size} and {n} × {n} pixels.", {
                  size: formatBytes(BYTES_MAX),
                  n: PIXELS_MAX,
                })}
              </p>
            ) : (
              <img
                class="logo"
                alt={t("Logo of {name}", { name })}
                src={`data:${logo.type === "image/jpeg" ? logo.type : "image/png"};base64,${logo.image}`}
              />
            )}
            <input
              ref={input}
              type="file"
              accept="image/png,image/jpeg"
              aria-label={t("Logo")}
              hidden
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file !== undefined) upload(file);
                event.currentTarget.value = "";
              }}
            />
            <div class="acts">
              <Action needs={WRITE} icon="up" onClick={() => input.current?.click()}>
                {logo === undefined ? t("Choose a picture…") : t("Replace…")}
              </Action>
              {logo !== undefined && (
                <Action needs={WRITE} kind="bad" onClick={remove}>
                  {t("Remove")}
                </Action>
              )}
            </div>
          </>
        )}
      </Loading>
    </Section>
  );
}

async function readLogo(path: string): Promise<{ logo: Logo | undefined }> {
  try {
    return { logo: await callService<Logo>("auth", path) };
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return { logo: undefined };
    throw error;
  }
}

async function toBase64(file: File): Promise<string> {
  const reader = new FileReader();
  const url = await new Promise<string>((resolve, reject) => {
    reader.addEventListener("load", () => resolve(reader.result as string));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("unreadable")));
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(",") + 1);
}
