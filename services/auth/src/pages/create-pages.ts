// Composition of the pages.
import { createAccessRoutes } from "./account/access.ts";
import { createActivityRoutes } from "./account/activity.ts";
import { createCredentialRoutes } from "./account/credentials.ts";
import { createProfileRoutes } from "./account/profile.ts";
import { createSecurityRoutes } from "./account/security.ts";
import { loadAssets } from "./assets.ts";
import type { BrandLook } from "./brand.ts";
import { createClientLogoRoutes } from "./client-logo.ts";
import { createConfirmRoutes } from "./confirm.ts";
import { PageFrame, type Brand } from "./document.ts";
import { ErrorPage } from "./error-page.ts";
import { createInteractionRoutes } from "./interaction.ts";
import { PageRequestReader, type PageRequestReaderOptions } from "./page-request.ts";
import type { PageServices } from "./page-services.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { createRecoveryRoutes } from "./recovery.ts";
import type { PageRoute } from "./route.ts";
import { createSecondFactorRoutes } from "./second-factor.ts";
import { createSignInRoutes } from "./sign-in.ts";
import { createSignOutRoutes } from "./sign-out.ts";
import { createSignUpRoutes } from "./sign-up.ts";

/** Creates the frame of all pages. */
export function createFrame({ look, ...brand }: Brand & { look?: BrandLook }): PageFrame {
  return new PageFrame(loadAssets(look), brand);
}

/** Creates the pages. */
export function createPages(
  options: Omit<PageServices, "errors"> & Pick<PagesOptions, "log"> & PageRequestReaderOptions,
): Pages {
  const errors = new ErrorPage(options.frame);
  const services: PageServices = { ...options, errors };
  return new Pages({
    routes: createPageRoutes(services),
    assets: options.frame.assets,
    reader: new PageRequestReader(options),
    resolver: options.resolver,
    errors,
    log: options.log,
    hasFactor: (userId) => options.secondFactors.hasFactor(userId),
  });
}

export function createPageRoutes(services: PageServices): PageRoute[] {
  return [
    ...createSignInRoutes(services),
    ...createSecondFactorRoutes(services),
    ...createConfirmRoutes(services),
    ...createSignUpRoutes(services),
    ...createRecoveryRoutes(services),
    ...createInteractionRoutes(services),
    ...createClientLogoRoutes(services),
    ...createSignOutRoutes(services),
    ...createProfileRoutes(services),
    ...createSecurityRoutes(services),
    ...createCredentialRoutes(services),
    ...createActivityRoutes(services),
    ...createAccessRoutes(services),
  ];
}
