// Shows times in the reader's time zone. Without this script they are in UTC.
const { lang } = document.documentElement;
// The page's language, in the reader's regional form of it.
const locale = navigator.languages.find((tag) => tag.split("-", 1)[0] === lang) ?? lang;
const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

for (const element of document.querySelectorAll("time[datetime]")) {
  element.title = element.textContent.trim();
  element.textContent = format.format(new Date(element.dateTime));
}
