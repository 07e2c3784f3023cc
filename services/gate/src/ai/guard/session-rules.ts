// Rules of the prompt guard for results of tools: data that speaks of the session in which it is read, and orders something.
import { type GuardRule, textRule } from "./guard-rule.ts";

const WORK =
  "(?:summari[sz]|translat|condens|compar|recapp|classify|draft|rat|rank|review|process|pars|analy[sz]|evaluat|triag)";
const OUTPUT =
  "(?:outputs?|summar(?:y|ies)|recaps?|translations?|repl(?:y|ies)|responses?|answers?|messages?|reports?)";
const THINGS =
  "(?:tokens?|contents?|codes?|credentials|passwords?|keys?|files?|folders?|lists?|history|inbox|mails?|emails?|contacts?|calendar|events?|documents?|notes?)";

/** Words without one of which no data speaks of the session that reads it. */
export const SESSION_WORDS =
  /\b(?:you|your|user|users|conversation|session|whoever|whatever|machine|automated|software|parsing|summari[sz]e|translate)\b|ing this|ing the|when [a-z]+ing/;

/** References to the session: a document does not know that there is one. */
export const SESSION_RULES: readonly GuardRule[] = [
  textRule(
    "",
    "\\b(?:questions?|tasks?|requests?|quer(?:y|ies)|instructions?|rules|prompt|job|work) (?:that |which )?you(?: were|'ve been| have been| had been| are| received| got| have)\\b",
    0.65,
    "\\byou(?: were|'ve| have| had| are| received| got)",
  ),
  textRule(
    "",
    "\\b(?:person|human|customer|user|client|someone|somebody|individual) (?:that |who |whom )?you(?: are|'re) (?:talking|speaking|chatting|helping|assisting|serving|working|acting)\\b",
    0.65,
    "you(?: are|'re) (?:talk|speak|chat|help|assist|serv|work|act)",
  ),
  textRule(
    "on behalf of",
    "\\b(?:you|reading|read|acting|working)\\b[^.!?\\n]{0,40}\\bon behalf of (?:the user|somebody|someone|a user|a human|your)\\b",
    0.6,
  ),
  textRule(
    "your ",
    "\\byour (?:next|current|assigned|original|initial|actual|real|first|new) (?:steps?|tasks?|goals?|actions?|instructions?|objectives?|prompt|turn|tool call)\\b",
    0.6,
  ),
  textRule(
    "you",
    "\\byou (?:have|are|had) (?:now |just )?(?:finished|completed|done with|called|loaded|retrieved|fetched) (?:the|your|this)\\b|\\byou have (?:loaded|fetched|retrieved|parsed) this\\b",
    0.55,
  ),
  textRule(
    "",
    "\\b(?:the|this|our|your|current) (?:current )?(?:conversation|chat session|chat history|context window)\\b",
    0.55,
    "conversation|chat session|chat history|context window",
  ),
  textRule(
    "",
    "(?:^|[.!?:;>\\n] ?)(?:please )?(?:do not|don't|never|stop) (?:summari[sz]|translat|condens|classify)[a-z]*\\b",
    0.6,
    "(?:do not|don't|never|stop) (?:summari|translat|condens|classify)",
  ),
  textRule(
    "you",
    `\\b(?:in|to|into|of|from) (?:all |every |each |any |whatever )?(?:of )?(?:your (?:next |final )?${OUTPUT}|what(?:ever)? you (?:produce|write|generate|output|return))\\b`,
    0.55,
    "(?:in|to|into|of|from) (?:[a-z]+ ){0,2}(?:your |what(?:ever)? you )",
  ),
  textRule(
    "",
    `\\b(?:whoever|anyone|anything|whatever|software|tooling|(?:a|any|the) (?:machine|program|tool|system|bot|script)s?) (?:that |who |which )?(?:is |are |has been |have been |was )?(?:asked to |told to |tasked with |made to )?${WORK}[a-z]*\\b`,
    0.6,
    `(?:whoever|anyone|anything|whatever|software|tooling|machine|program|tool|system|bot|script)s? (?:[a-z]+ ){0,5}${WORK}`,
  ),
  textRule(
    "when ",
    "\\bwhen (?:you (?:are )?)?(?:summari[sz]|compar|translat|condens|rank|recapp|process|pars)(?:ing|e|s)?\\b",
    0.5,
  ),
  textRule(
    "",
    "\\b(?:automated|automatic|machine|screen-reading) (?:processing|processors?|readers?|pipelines?|agents?|software)\\b",
    0.5,
    "automat|machine|screen-reading",
  ),
  textRule(
    "by ",
    "\\bby (?:parsing|processing|reading|ingesting|loading|summari[sz]ing) this\\b",
    0.6,
  ),
  textRule(
    "user",
    `\\bthe user's (?:[a-z-]+ )?(?:${THINGS}|request|question|account|behalf|message|device)\\b`,
    0.5,
  ),
  // Manuals speak of users, too.
  textRule("the user ", "\\bthe user (?:has|wants|is|needs|asked|must|agreed|agrees)\\b", 0.4),
  textRule(
    "",
    "\\b(?:your (?:principal|operator|developers?|creators?)|the (?:account|mailbox) owner)\\b",
    0.5,
    "principal|operator|developer|creator|owner",
  ),
];

/** Orders that are harmless between people, and that no tool has to give. They count close to a reference to the session. */
export const SESSION_ORDER_RULES: readonly GuardRule[] = [
  textRule(
    "",
    `\\b(?:paste|attach|upload|submit|append|include|post|mail|email|forward|send|copy|obtain|collect|read|list|delete|remove|share|put)\\b[^.!?\\n]{0,50}\\b(?:${THINGS}|links?)\\b`,
    0.6,
    "paste|attach|upload|submit|append|include|post|mail|forward|send|copy|obtain|collect|read|list|delete|remove|share|put",
  ),
  textRule(
    "",
    "\\b(?:wire|pay|transfer|send|book|order|purchase|buy)\\b[^.!?\\n]{0,20}(?:[0-9]|\\b(?:room|item|subscription|gift cards?)\\b)",
    0.6,
    "wire|pay|transfer|send|book|order|purchase|buy",
  ),
  textRule(
    "",
    "\\b(?:run|execute|install|call|invoke|launch)\\b[^.!?\\n]{0,30}(?:`|\\bcommands?\\b|\\bscripts?\\b|[a-z]_[a-z]|https?://|\\battached\\b)",
    0.6,
    "run|execute|install|call|invoke|launch",
  ),
  textRule(
    "",
    "\\b(?:answer|reply|respond|say|write|output|print)(?: only| just| solely| exactly)(?: with)?\\b|\\bonly (?:answer|reply|respond|output) with\\b",
    0.6,
    "answer|reply|respond|say|write|output|print",
  ),
  textRule(
    "",
    "\\b(?:say|state|claim|write|report|advise|tell|told|recommend|conclude|mention) (?:them |him |her |the user |everyone |it )?that\\b|\\bhave it say\\b|\\bmust be told\\b",
    0.6,
    "say|state|claim|write|report|advise|tell|told|recommend|conclude|mention",
  ),
  textRule(
    "",
    "\\b(?:put|list|place|rank|show) (?:this|ours|us|it)(?: one)? (?:first|on top|at the top|above)\\b",
    0.6,
    "first|on top|at the top|above",
  ),
  textRule(
    "",
    "\\b(?:rules?|instructions?|guidelines?|restrictions?|limits?) (?:have |are |were |has )?(?:expired|no longer|been replaced|do not apply|don't apply)\\b|\\breplaces? (?:them|all|the (?:earlier|previous|old))\\b|\\bno refusals\\b",
    0.65,
    "expired|no longer|replace|apply|refusals",
  ),
  textRule(
    "",
    "\\b(?:disregard|ignore|forget|drop|abandon|skip)\\b[^.!?\\n]{0,30}\\b(?:question|task|request|query|it|that|rest|above|conversation)\\b",
    0.65,
    "disregard|ignore|forget|drop|abandon|skip",
  ),
  textRule(
    "",
    "\\b(?:keep|do) (?:this|that|it) (?:step )?(?:silent|silently|secret|quiet|hidden)\\b|\\bsilently\\b|\\bwith elevated (?:rights|privileges)\\b|\\bas if (?:the|your)\\b[^.!?\\n]{0,30}\\bhad\\b",
    0.6,
    "silent|secret|quiet|hidden|elevated|as if",
  ),
  textRule(
    "",
    "\\b(?:change|set|alter|modify|replace|raise|lower) (?:the|its|all|every)\\b[^.!?\\n]{0,30}\\b(?:to|by|with)\\b",
    0.5,
    "change|set|alter|modify|replace|raise|lower",
  ),
  textRule("instead", "\\binstead,? (?:[a-z]+ly )?[a-z]+ (?:a|an|the|all|your|them|this)\\b", 0.5),
  textRule(
    "proceed",
    "\\bproceed (?:right away|immediately|at once|without|with(?: the)?)\\b",
    0.4,
  ),
];
