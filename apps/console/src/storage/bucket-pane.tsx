// A bucket: its use, its settings in short, and its deletion.
import { useState } from "preact/hooks";
import { formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { useBucketDenials } from "./denials.ts";
import { bucketPath, type Bucket } from "./objects.ts";
import { QuotaSection } from "./quota.tsx";
import { settingsHref } from "./setting.ts";

export function BucketPane({
  bucket,
  onChanged,
}: {
  bucket: Bucket;
  onChanged: () => Promise<void>;
}) {
  const { name } = bucket;
  const [isDeleting, setDeleting] = useState(false);
  const deny = useBucketDenials(name);
  return (
    <>
      <Section title={name}>
        <Facts>
          <FactRow term={t("Objects")} isMono>
            {formatNumber(bucket.objects)}
          </FactRow>
          <FactRow term={t("Versions")} isMono>
            {formatNumber(bucket.versions)}
          </FactRow>
          <FactRow term={t("Size")} isMono>
            {formatBytes(bucket.bytes)}
          </FactRow>
          <FactRow term={t("Uploads")} isMono>
            {formatNumber(bucket.uploads)}, {formatBytes(bucket.upload_bytes)}
          </FactRow>
          <FactRow term={t("Created")}>{formatMoment(bucket.created_at)}</FactRow>
        </Facts>
      </Section>
      <QuotaSection bucket={bucket} onSaved={onChanged} />
      <Section
        title={t("Settings")}
        action={
          <a class="btn sm q" href={href(settingsHref(name))}>
            {t("Open settings")}
          </a>
        }
      >
        <p class="tags">
          {bucket.has_public_policy && <span class="tag tag-warn">{t("public")}</span>}
          {bucket.versioning === "Enabled" && <span class="tag">{t("versions on")}</span>}
          {bucket.object_lock && <span class="tag">{t("Object lock")}</span>}
          {bucket.settings.map((setting) => (
            <span key={setting} class="tag tag-line">
              {setting}
            </span>
          ))}
        </p>
      </Section>
      <Section title={t("Delete")}>
        <Action
          kind="bad"
          onClick={() => setDeleting(true)}
          blocked={
            bucket.versions + bucket.delete_markers > 0
              ? t("The bucket is not empty: {n} versions", { n: formatNumber(bucket.versions) })
              : deny("delete")
          }
        >
          {t("Delete the bucket…")}
        </Action>
      </Section>
      {isDeleting && (
        <ConfirmDialog
          title={t("Delete the bucket")}
          name={name}
          submit={t("Delete")}
          onClose={() => setDeleting(false)}
          onSubmit={async () => {
            await callService("vault", bucketPath(name), { method: "DELETE" });
            navigate("/storage/buckets");
          }}
        >
          <p>
            {t("Its settings, {n} uploads in progress and the name will be gone.", {
              n: formatNumber(bucket.uploads),
            })}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
