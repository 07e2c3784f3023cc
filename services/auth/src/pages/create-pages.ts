// The composition of the pages.
import { loadAssets } from "./assets.ts";
import { listAccessRoutes } from "./account/access.ts";
import { listCredentialRoutes } from "./account/credentials.ts";
import { listProfileRoutes } from "./account/profile.ts";
import { listSecurityRoutes } from "./account/security.ts";
import { listConfirmRoutes } from "./confirm.ts";
import { PageFrame } from "./document.ts";
import { ErrorPage } from "./error-page.ts";
import { listInteractionRoutes } from "./interaction.ts";
import type { PageParts } from "./page-parts.ts";
import { Pages, type PagesParts } from "./pages.ts";
import type { PageRoute } from "./route.ts";
import { listRecoveryRoutes } from "./recovery.ts";
import { listSecondFactorRoutes } from "./second-factor.ts";
import { listSignInRoutes } from "./sign-in.ts";
import { listSignOutRoutes } from "./sign-out.ts";
import { listSignUpRoutes } from "./sign-up.ts";
import { VisitReader, type VisitParts } from "./visit.ts";

/** The frame of all pages; `brand` is the name that people know the service by. */
export function createFrame(brand: string): PageFrame {
  return new PageFrame(loadAssets(), brand);
}

/** Makes the pages in their frame. */
export function createPages(
  options: Omit<PageParts, "errors"> & Pick<PagesParts, "log"> & VisitParts,
): Pages {
  const errors = new ErrorPage(options.frame);
  const parts: PageParts = { ...options, errors };
  return new Pages({
    routes: listPageRoutes(parts),
    assets: options.frame.assets,
    visits: new VisitReader(options),
    resolver: options.resolver,
    errors,
    log: options.log,
    hasFactor: (userId) => options.secondFactors.hasFactor(userId),
  });
}

/** All routes. */
export function listPageRoutes(parts: PageParts): PageRoute[] {
  return [
    ...listSignInRoutes(parts),
    ...listSecondFactorRoutes(parts),
    ...listConfirmRoutes(parts),
    ...listSignUpRoutes(parts),
    ...listRecoveryRoutes(parts),
    ...listInteractionRoutes(parts),
    ...listSignOutRoutes(parts),
    ...listProfileRoutes(parts),
    ...listSecurityRoutes(parts),
    ...listCredentialRoutes(parts),
    ...listAccessRoutes(parts),
  ];
}
