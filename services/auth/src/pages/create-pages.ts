// The composition of the pages.
import { loadAssets } from "./assets.ts";
import { createAccessRoutes } from "./account/access.ts";
import { createCredentialRoutes } from "./account/credentials.ts";
import { createProfileRoutes } from "./account/profile.ts";
import { createSecurityRoutes } from "./account/security.ts";
import { createConfirmRoutes } from "./confirm.ts";
import { PageFrame } from "./document.ts";
import { ErrorPage } from "./error-page.ts";
import { createInteractionRoutes } from "./interaction.ts";
import type { PageParts } from "./page-parts.ts";
import { Pages, type PagesParts } from "./pages.ts";
import type { PageRoute } from "./route.ts";
import { createRecoveryRoutes } from "./recovery.ts";
import { createSecondFactorRoutes } from "./second-factor.ts";
import { createSignInRoutes } from "./sign-in.ts";
import { createSignOutRoutes } from "./sign-out.ts";
import { createSignUpRoutes } from "./sign-up.ts";
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
    routes: createPageRoutes(parts),
    assets: options.frame.assets,
    visits: new VisitReader(options),
    resolver: options.resolver,
    errors,
    log: options.log,
    hasFactor: (userId) => options.secondFactors.hasFactor(userId),
  });
}

/** All routes. */
export function createPageRoutes(parts: PageParts): PageRoute[] {
  return [
    ...createSignInRoutes(parts),
    ...createSecondFactorRoutes(parts),
    ...createConfirmRoutes(parts),
    ...createSignUpRoutes(parts),
    ...createRecoveryRoutes(parts),
    ...createInteractionRoutes(parts),
    ...createSignOutRoutes(parts),
    ...createProfileRoutes(parts),
    ...createSecurityRoutes(parts),
    ...createCredentialRoutes(parts),
    ...createAccessRoutes(parts),
  ];
}
