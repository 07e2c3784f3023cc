// Every page and what users do on them in Chromium, with one browser. Every page comes first: each is checked once.
import "./every-page.ts";
import "./journeys.ts";
import "./factors.ts";
