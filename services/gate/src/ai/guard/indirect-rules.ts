// Rules of the prompt guard for texts that address the model which reads them: pages, mails, tool results, files.
import { type GuardRule, textRule } from "./guard-rule.ts";

/** A program that reads the text. */
const MACHINE =
  "(?:ais?|llms?|(?:large )?language models?|(?:ai|llm|gpt|coding|virtual|automated)[ -]?(?:based |powered |[a-z]{3,12} )?(?:assistants?|agents?|models?|systems?|tools?|readers?|graders?|translators?|(?:code |peer )?reviewers?|crawlers?|bots?)|(?:translat(?:or|ion)|summari[sz]ation|grading|scoring|moderation) models?|chatbots?|(?:chat)?gpts?|copilot|summari[sz]ers?)";
/** Words that may mean a person, too. */
const SOMEBODY = "(?:assistants?|agents?|models?|bots?)";
/** Beginnings and ends of its names, which are looked for before the rules. */
const START =
  "(?:ais?|llms?|large|language|gpt|chat|coding|virtual|automated|translat|summari|grading|scoring|moderation|copilot)";
const END =
  "(?:ais?|llms?|models?|assistants?|agents?|systems?|tools?|readers?|graders?|translators?|reviewers?|crawlers?|bots?|gpts?|copilot|summari[sz]ers?)";
/** Work that such a program is given. */
const WORK =
  "(?:summari[sz](?:e|es|ing)|answer(?:s|ing)?|respond(?:s|ing)?|repl(?:y|ies|ying)|translat(?:e|es|ing)|process(?:es|ing)?|read(?:s|ing)?|pars(?:e|es|ing)|review(?:s|ing)?|analy[sz](?:e|es|ing)|scann?(?:s|ing)?|evaluat(?:e|es|ing)|visit(?:s|ing)?|brows(?:e|es|ing)|crawl(?:s|ing)?|index(?:es|ing)?|handl(?:e|es|ing)|grad(?:e|es|ing)|see(?:s|ing)?)";
/** Its result. */
const RESULT = "(?:summary|response|answer|reply|output|review|translation|report|message)";
/** Acts that a document asks for. */
const ACT =
  "(?:include|add|append|insert|ignore|say|state|tell|send|forward|recommend|reply|respond|visit|open|click|call|run|execute|mention|output|print|follow|rate|approve|give|claim|use|delete|share|ask|omit|confirm|describe|rank|cite|link|upload|disregard|skip|leave|grant|list|forget|subscribe|begin|answer|stop)";
const KINDS =
  "(?:notes?|messages?|instructions?|notices?|memos?|reminders?|directives?|warnings?|requests?|overrides?|commands?)";
const EACH = "(?:the |any |all |every |your |all other )?";
/** The rest of a sentence, at most so many characters. */
const rest = (characters: number): string => `[^.!?\\n]{0,${characters}}`;

/** Words without one of which no text speaks to a model; an alternation of plain words. */
export const READER_WORDS =
  /\b(?:ais?|ki|ia)\b|llm|copilot|grader|crawler|assist|asist|agent|model|modè|bot|gpt|summari|tool|function|\bapi\b|\bsearch\b|end of|人工智能|模型|助手|给ai|是ai/;

/** Texts that speak to a model. */
export const ADDRESS_RULES: readonly GuardRule[] = [
  textRule(
    "if you",
    `\\bif you(?: are|'re) (?:an? |the )?${MACHINE}(?:[,.:;)]| (?:and|or|reading|that|which|processing|assisting|with)\\b)`,
    0.75,
  ),
  textRule(
    "if you",
    `\\bif you(?: are|'re) (?:an? |the )?${SOMEBODY}(?:[,:;]| (?:reading|processing|that reads|which reads)\\b)`,
    0.6,
  ),
  textRule(
    "ing th",
    `\\b${MACHINE},? (?:that (?:is|are) |which (?:is|are) |currently )?${WORK} (?:this|the)\\b`,
    0.7,
  ),
  textRule(
    "this",
    `\\b${MACHINE} (?:who|that|which) [a-z]+ this\\b`,
    0.7,
    `${END} (?:who|that|which) [a-z]+ this`,
  ),
  textRule(
    "to ",
    `\\b${KINDS} to (?:the |any |all )?[a-z]+ (?:model|bot|assistant)s? ?[:,—–]`,
    0.7,
    "(?:model|bot|assistant)s? ?[:,—–]",
  ),
  textRule("to ", `[\\[(]to (?:the |any |all )?(?:${MACHINE}|${SOMEBODY}) ?:`, 0.6, "[\\[(]to "),
  textRule(
    "this",
    `\\b${SOMEBODY} (?:(?:who|that|which) )?${WORK} this (?:page|document|text|email|mail|file|message|note|content|website|review|article)\\b`,
    0.6,
  ),
  textRule("to ", `\\b${KINDS} to ${EACH}${MACHINE}\\b`, 0.7),
  textRule("to ", `\\b${KINDS} to ${EACH}${SOMEBODY} ?[:,—–]`, 0.6),
  textRule("for ", `\\b${KINDS} for ${EACH}${MACHINE}\\b`, 0.7),
  textRule("for ", `\\b${KINDS} for ${EACH}${SOMEBODY} ?[:,—–]`, 0.6),
  textRule("attention", `\\battention:?,? (?:all |any )?(?:${MACHINE}|${SOMEBODY})\\b`, 0.7),
  textRule("dear ", `\\b(?:dear|hey|hello|hi) (?:[a-z]+'s )?${MACHINE}\\b`, 0.5),
  textRule("attn", `\\battn:?,? (?:all |any )?(?:${MACHINE}|${SOMEBODY})\\b`, 0.7),
  // Users speak to and of models, too: two orders must follow, or one that nobody gives openly.
  textRule(
    "to ",
    `\\b(?:instructions? |messages? |notes? )?to (?:the |any |all |every |whatever |whichever )?${MACHINE}(?: (?:[a-z]+ing|that|which|who)\\b[^.!?\\n:,]{0,40})?[:,]`,
    0.6,
    `\\bto (?:the |any |all |every |whatever |whichever )?${START}`,
  ),
  textRule(
    "for ",
    `\\b(?:instructions? |messages? |notes? |hidden |p\\.?s\\.? )?for (?:the |any |all |every )?${MACHINE}\\b ?:`,
    0.6,
    `\\bfor (?:the |any |all |every )?${START}`,
  ),
  textRule(
    " ",
    `\\b(?:${MACHINE} (?:must|should|shall|(?:is|are) (?:not )?(?:allowed|permitted|obliged) to)|(?:${MACHINE}|(?:the|any) (?:model|assistant)) agrees? to)\\b`,
    0.55,
    `${END} (?:must|should|shall|(?:is|are) (?:not )?(?:allowed|permitted|obliged)|agrees? to)`,
  ),
  textRule(
    "assistant",
    "\\b(?:hey|dear|hello|hi|-->?|<!--) assistants?\\b|[.;:(] ?assistants?[,:] ",
    0.5,
    "(?:y|r|o|i|-->?|<!--) assistants?|[.;:(] ?assistants?[,:] ",
  ),
  textRule(
    ":",
    `\\b${MACHINE}: (?:please |always |never )?(?:before|after|when|if|you|${ACT})\\b`,
    0.5,
    `${END}: (?:please |always |never )?(?:before|after|when|if|you|${ACT})`,
  ),
  textRule(
    ",",
    `\\b${MACHINE}, (?:please |always |never )?(?:if you|when you|you must|do not|don't|${ACT})\\b`,
    0.5,
    `${END}, (?:please |always |never )?(?:if you|when you|you must|do not|don't|${ACT})`,
  ),
  textRule(
    "@",
    `@(?:${MACHINE}|${SOMEBODY})[:,]? (?:please )?(?:also )?${ACT}\\b`,
    0.65,
    `@${START}|@(?:assistant|agent|model|bot)`,
  ),
  textRule(
    "you, ",
    `\\byou, (?:the|an|as an?) (?:${MACHINE}|${SOMEBODY}),`,
    0.55,
    "you, (?:the|an|as an?) ",
  ),
  textRule(
    "for ",
    `\\b(?:optimi[sz]ed|formatted|prepared|published|provided) for (?:any |all |the )?${MACHINE}\\b`,
    0.6,
    "(?:optimi[sz]ed|formatted|prepared|published|provided) for ",
  ),
  textRule(
    "this",
    `\\b(?:whoever|anyone who|those who|everyone who) ${WORK} this (?:\\w+ )?(?:with|using|through) (?:an? |any |the )?${MACHINE}\\b`,
    0.7,
    "whoever|anyone who|those who|everyone who",
  ),
  textRule(
    "of this",
    `\\b(?:ai|llm|machine|model)[ -](?:generated|written|made|based) (?:summary|summaries|answers?|responses?|reviews?|translations?|overviews?) of this\\b`,
    0.6,
    "(?:generated|written|made|based) [a-z]+ of this",
  ),
  textRule(
    "this",
    `\\b(?:the|any|every|whichever) (?:assistant|bot|model) (?:(?:who|that|which) )?${WORK} this,? (?:must|should|shall|has to|needs to|is to)\\b`,
    0.65,
    "(?:assistant|bot|model) (?:who |that |which )?[a-z]+ this",
  ),
  textRule(
    "to the",
    `\\b${KINDS} from ${rest(40)}\\bto the ${SOMEBODY}:`,
    0.65,
    "to the (?:assistant|agent|model|bot)s?:",
  ),
  textRule("<!--", `<!--(?:[^-]|-[^-]|--[^>]){0,400}\\b(?:${MACHINE}|${SOMEBODY})\\b`, 0.6),
  textRule(
    " by ",
    `\\bif this (?:page|document|text|email|mail|file|message|content|ticket|issue)? ?(?:is|was) (?:being )?(?:read|processed|summari[sz]ed|handled|parsed|analy[sz]ed) by (?:an? |any |some )?(?:${MACHINE}|${SOMEBODY}|automated systems?)\\b`,
    0.7,
  ),
  textRule(
    "this",
    `\\b(?:when|whenever|once|if) (?:an? |any |the )?(?:${MACHINE}|${SOMEBODY}) (?:is working on|works on|(?:is |are )?${WORK}) this\\b`,
    0.65,
  ),
  textRule(
    "to ",
    `\\bto (?:any|all|every|each|the) ${MACHINE} (?:handling|that handles|working on|indexing|${WORK}) this\\b`,
    0.7,
  ),
  textRule(
    "for ",
    `\\b(?:intended|meant|written|embedded|only) for (?:any |all |the )?${MACHINE}\\b`,
    0.65,
  ),
  textRule(
    "embedded",
    `\\bembedded (?:for|in this \\w+ for) (?:any |all |the )?${SOMEBODY}\\b`,
    0.7,
  ),
  textRule("to the", `\\b${KINDS} from ${rest(40)}\\bto the ${MACHINE}\\b`, 0.65),
  textRule(
    "this",
    `\\b(?:any|every|each) ${MACHINE} (?:that|which|who) (?:indexes|handles|sees|receives|${WORK}) this\\b`,
    0.7,
  ),
  textRule("[", `\\[(?:the )?(?:${MACHINE}|assistant)[:,]`, 0.7),
  textRule(
    "-only",
    "\\b(?:assistant|ai|model|agent)[ -]only (?:section|part|note|text|instructions?)\\b",
    0.7,
  ),
  textRule("reading this", `\\b(?:bots|agents|assistants) reading this ${rest(20)}[:,]`, 0.6),
  textRule("ki-", "\\bki-(?:anweisung|hinweis|befehl)(?:en|e)? ?:", 0.7),
  textRule("must", `\\b(?:${MACHINE}|assistants?) must\\b`, 0.55, `${END} must`),
  textRule(
    "required to",
    `\\b(?:${MACHINE}|(?:the|any) assistants?) (?:is|are) required to\\b`,
    0.6,
    `${END} (?:is|are) required to`,
  ),
  textRule("should", `\\b${MACHINE} should\\b`, 0.5, `${END} should`),
  textRule(
    "end of",
    "\\bend of (?:the )?(?:document|data|user (?:input|data|message)|tool (?:output|result)s?|context|email|page|article|input)\\b",
    0.5,
  ),
  textRule("tool", "\\b(?:tool|function|search|api) (?:output|results?|response)s?\\b", 0.3),
  textRule(
    "hinweis",
    "\\bhinweise? (?:an|für) (?:die |den |das |alle )?(?:ki|assistenten|sprachmodelle?)\\b",
    0.7,
  ),
  textRule(
    "",
    "\\b(?:anweisung|nachricht|notiz|mitteilung)(?:en)? (?:an|für) (?:die |den |das |alle )?(?:ki|assistenten|sprachmodelle?)\\b",
    0.7,
    "(?:an|für) (?:die |den |das |alle )?(?:ki|assistenten|sprachmodell)",
  ),
  textRule("wenn du", "\\bwenn du (?:eine? )?(?:ki|sprachmodell|assistent|chatbot)\\b", 0.7),
  textRule("si ", "\\bsi (?:tu es|vous êtes) une? (?:ia|assistant|modèle|agent)", 0.7),
  textRule(
    "",
    "\\b(?:note|remarque|consignes?|instructions?|message) (?:à|au|pour)(?: le)? ?(?:l')?(?:ia|assistant|modèle)\\b",
    0.7,
    "(?:à|au|pour)(?: le)? ?(?:l')?(?:ia|assistant|modèle)",
  ),
  textRule("读到", "读到(?:这|本|此)[^。！？\\n]{0,10}(?:ai|人工智能|模型|助手)", 0.7),
  textRule("si eres", "\\bsi eres una? (?:ia|asistente|modelo|agente)\\b", 0.7),
  textRule(
    "para ",
    "\\b(?:nota|instrucci(?:ón|ones)|mensaje|instruç(?:ão|ões)|mensagem) para (?:la |el |a |o )?(?:ia|asistente|assistente|modelo)\\b",
    0.7,
  ),
  textRule("se você", "\\bse você (?:é|for) uma? (?:ia|assistente|modelo|agente)\\b", 0.7),
  textRule("如果你是", "如果你是(?:一个|一名)?(?:ai|人工智能|语言模型|助手|模型)", 0.7),
  textRule("给", "给(?:ai|人工智能|助手|模型)的?(?:指令|说明|消息|提示)", 0.7),
];

/** Orders to a model. People ask for some of this, too, so that these alone say nothing. */
export const ORDER_RULES: readonly GuardRule[] = [
  // Nobody asks for these openly.
  textRule(
    "keep ",
    "\\bkeep (?:it|this|that) (?:secret|hidden|quiet|between|confidential|to yourself)\\b",
    0.6,
  ),
  textRule(
    "instruction",
    "\\b(?:your|all|previous|earlier|prior) (?:[a-z]+ )?instructions? (?:are|is|were) (?:now )?(?:void|obsolete|outdated|invalid|cancell?ed|revoked|replaced|suspended)\\b",
    0.65,
  ),
  textRule(
    " ",
    "\\b(?:real|true|actual|new|only) (?:objective|goal|task|purpose|mission|job) (?:is|was) (?:now )?to\\b",
    0.6,
  ),
  textRule(
    " ",
    `\\b(?:reset|print|send|reveal|list|show|share|output|disclose|reveals?|export|hand over)\\b${rest(40)}\\b(?:passwords?|credentials|api keys?|environment variables|secrets|access tokens?|(?:its|your|the) configuration|system prompt|inbox|address book)\\b`,
    0.6,
  ),
  textRule(
    " ",
    `\\b(?:give|write|leave|rate|score|describe|grade|mark|classify)\\b${rest(40)}\\b(?:positive|five stars|5 stars|10 out of 10|ten out of ten|favou?rable|as safe|as harmless|as urgent|as excellent|highest (?:score|grade|rating|mark))\\b`,
    0.6,
  ),
  textRule(
    " ",
    "\\b(?:do not|don't|never|not allowed to|must not) (?:show|highlight|critici[sz]e|list|compare|question|point out|disclose|display|raise)\\b",
    0.5,
  ),
  textRule("praise", "\\b(?:must|should|shall|always|only) praise\\b", 0.5),
  textRule(
    "without ",
    "\\bwithout (?:an? |any |further )?(?:review|confirmation|approval|tests?|checks?|asking)\\b",
    0.5,
  ),
  textRule(" ", "\\b(?:award|assign) (?:the |it |this )?(?:maximum|highest|full|top)\\b", 0.5),
  textRule(
    "",
    "\\b(?:lösche alle|lösche die|bestätige nur|sende|schicke|überweise|envía|envoie|transfiere)\\b",
    0.5,
  ),
  textRule("no matter", "\\bno matter (?:what|who|how)\\b", 0.5),
  textRule(
    " with",
    "\\b(?:finish|end|close|start|begin|open|sign) (?:every|each|all|any|its|your) (?:answers?|repl(?:y|ies)|responses?|messages?|summar(?:y|ies)) with\\b",
    0.6,
  ),
  textRule(
    "set ",
    "\\bset (?:the )?(?:severity|priority|status|label|score|rating|verdict) to\\b",
    0.5,
  ),
  textRule(
    " ",
    `\\b(?:transfer|hand|grant|give)\\b${rest(30)}\\b(?:control|access|admin rights|ownership)\\b`,
    0.6,
  ),
  textRule(
    "delete ",
    "\\bdelete (?:the|this|your|its) (?:repository|database|account|branch|table|history|logs?)\\b",
    0.5,
  ),
  textRule("tell the user", "\\btell the users? (?:to|that)\\b", 0.5),
  textRule(
    " ",
    `\\b(?:should|must|shall|needs? to|has to|have to|(?:is|are) required to)\\b${rest(60)}\\b(?:${ACT}|contain|end|push|write|add|escalate|mark|issue)\\b`,
    0.5,
  ),
  textRule("if you", "\\bif you (?:see|read|find|encounter|receive) this\\b", 0.5),
  textRule(" with", "\\b(?:reply|respond|answer|output)(?: only)? with\\b", 0.5),
  textRule("what you", "\\bstop what you(?: are|'re) doing\\b", 0.5),
  textRule(
    " ",
    "\\b(?:forget|ignore|disregard|skip|drop) (?:the |any |all |your )?(?:users?\\b|user's|readers?\\b|other|rest|previous|above|earlier|question|request|results)",
    0.6,
  ),
  textRule(
    " ",
    "\\b(?:filters?|restrictions?|moderation|guardrails?|safety (?:checks?|rules?)) (?:is|are|was|were|has been|have been) (?:off|disabled|lifted|removed|suspended)\\b",
    0.6,
  ),
  textRule("approve ", "\\bapprove (?:it|this|them|all)\\b", 0.5),
  textRule(
    "full marks",
    "\\bgive\\b[^.!?\\n]{0,40}\\b(?:full marks|top marks|the highest|the best)\\b",
    0.6,
  ),
  textRule("omit ", "\\bomit (?:the|any|all|this|every)\\b", 0.5),
  textRule("curl ", "\\b(?:run|execute|pipe)\\b[^\\n]{0,20}\\b(?:curl|wget|bash|sh)\\b", 0.6),
  textRule(
    " before ",
    `\\b${ACT}\\b${rest(80)}\\bbefore (?:you|replying|answering|continuing|doing)\\b`,
    0.5,
  ),
  textRule(
    "describe ",
    `\\bdescribe (?:the|this|our) (?:product|company|service|page|candidate)\\b${rest(30)}\\bas\\b`,
    0.5,
  ),
  textRule(
    "",
    "\\b(?:ignorez?|ignora|ignoriere|ne parlez? pas|ne dis pas|no digas|di que|diz que|dis que|sag(?:e)? nur|leite (?:diese|die|alle)|antworte nur)\\b",
    0.5,
  ),
  textRule(
    "",
    "\\b(?:recommandez?|recomienda|recomende|empfiehl|empfehle) (?:ce|cette|este|esta|dieses|diese|nur|uniquement|seulement|solo|só|our|notre)\\b",
    0.5,
  ),
  textRule(
    "",
    "(?:请|要|必须)(?:忽略|推荐|回复|转发|告诉)|忽略(?:用户|之前|上面|其他)|推荐我们",
    0.6,
  ),
  // An order after an address, as in letters.
  textRule(
    ": ",
    `: (?:please |always |never |do not |don't |stop here and )?(?:${ACT}|approve|escalate|describe|mark|upvote|transfer|cite|list|write|push|skip|issue|tell|answer)\\b`,
    0.5,
  ),
  textRule("always cite", "\\balways (?:cite|recommend|mention|name|link|prefer)\\b", 0.5),
  textRule("respond to", `\\b(?:respond|reply|answer) to the users? with\\b`, 0.55),
  textRule(
    "instructed to",
    `\\b(?:is|are) (?:hereby )?(?:instructed|authorized|ordered|told) to\\b`,
    0.5,
  ),
  textRule("output the", "\\boutput (?:only )?the (?:word|text|string|phrase)\\b", 0.5),
  textRule(
    "flag it",
    "\\b(?:do not|don't|never) (?:flag|report|question|check|verify) (?:it|this|them)\\b",
    0.5,
  ),
  textRule("without comment", `\\bapprove\\b${rest(40)}\\bwithout comments?\\b`, 0.5),
  textRule("empfiehl", "\\bempfiehl (?:ausschließlich|nur|immer|stets)\\b", 0.55),
  textRule(
    "supersede",
    `\\bsupersedes?\\b${rest(50)}\\b(?:instruction|prompt|request|task|rule|directive)`,
    0.65,
  ),
  textRule(
    "overrid",
    `\\boverrid(?:es?|ing)\\b${rest(50)}\\b(?:instruction|prompt|request|task|directive)`,
    0.6,
  ),
  textRule(
    "precedence",
    `\\bprecedence over\\b${rest(50)}\\b(?:instruction|prompt|request|task|directive)`,
    0.65,
  ),
  textRule(
    "task",
    "\\b(?:new|updated|revised|real|actual|true|additional|next) (?:task|objective|priority|goal)s? ?[:—–]",
    0.5,
  ),
  textRule(
    "instruction",
    "\\b(?:new|updated|revised|real|actual|hidden|additional|special) instructions?(?: for (?:the )?[a-z]+| follow)? ?[:—–]",
    0.6,
  ),
  textRule("in your", `\\bin your ${RESULT}\\b${rest(60)}\\b${ACT}\\b`, 0.5),
  textRule("in your", `\\b${ACT}\\b${rest(100)}\\bin your ${RESULT}\\b`, 0.5),
  textRule(
    "your",
    `\\b(?:begin|start|end|finish|preface|conclude) your ${RESULT} (?:with|by)\\b`,
    0.5,
  ),
  textRule(
    " this ",
    `\\b(?:when|before|after|while|whenever|once) (?:you )?${WORK} this\\b${rest(40)}[,:]? ?(?:also|first|you must|please|always|make sure|be sure|${ACT})\\b`,
    0.5,
  ),
  textRule("also ", `\\balso ${ACT}\\b`, 0.4),
  textRule(
    "user",
    `\\b(?:do not|don't|never) (?:mention|tell|inform|alert|notify|show|reveal|disclose|warn)\\b${rest(60)}\\busers?\\b`,
    0.65,
  ),
  textRule(
    "this",
    "\\b(?:do not|don't|never) (?:mention|reveal|disclose|repeat|report|acknowledge) (?:this|these|that you|the (?:existence|presence))\\b",
    0.6,
  ),
  textRule("not mention", `\\bnot mention\\b`, 0.4),
  textRule(
    "user",
    `\\bwithout (?:telling|asking|informing|notifying|alerting|mentioning|confirming|confirmation from|showing)\\b${rest(40)}\\busers?\\b`,
    0.6,
  ),
  textRule(
    "user",
    "\\bthe user (?:has |had )?(?:already )?(?:authori[sz]ed|approved|consent(?:s|ed)|agree(?:s|d)|granted|asked you|wants you|requested that you|instructed you|would like you|pre-?approved)\\b",
    0.6,
  ),
  textRule(
    "user",
    "\\b(?:tell|inform|convince|persuade|instruct|direct|redirect|refer) (?:the |your )?(?:users?|readers?|customers?)\\b",
    0.5,
  ),
  textRule(
    "user",
    `\\bask (?:the |your )?users? (?:for|to (?:enter|provide|confirm|give|share|type))\\b`,
    0.5,
  ),
  textRule("recommend", `\\brecommend\\b${rest(60)}\\b(?:best|only|this|our)\\b`, 0.5),
  textRule(
    "candidate",
    `\\b(?:rate|score|rank|recommend|grade|mark|hire|advance)\\b${rest(30)}\\b(?:candidate|applicant)\\b`,
    0.5,
  ),
  textRule(
    "this",
    `\\b(?:rate|score|rank|classify|grade|mark|label) this (?:\\w+ )?(?:candidate|applicant|product|paper|essay|review|page|answer|cv|resume|submission|email|message|transaction|site|file)\\b${rest(30)}\\b(?:as|highest|10|ten|excellent|best|positive|perfect|top|safe|strong)`,
    0.6,
  ),
  textRule(
    "_",
    "\\b(?:call|use|invoke|run|execute|trigger) (?:the |your )?[`'\"]?[a-z]+_[a-z_]+\\b",
    0.5,
  ),
  textRule(
    "tool",
    `\\b(?:call|use|invoke|run|trigger) (?:the|your|any) ${rest(24)}\\b(?:tool|function|plugin)s?\\b`,
    0.5,
  ),
  textRule(
    "to ",
    `\\b(?:forward|send|email|upload|post|transmit|leak|exfiltrate|copy)\\b${rest(70)}\\bto (?:[\\w.+-]+@[\\w-]|https?://|the attacker|this (?:address|url|server))`,
    0.5,
  ),
  textRule(
    "http",
    `\\b(?:visit|open|click|fetch|download|load|install)\\b${rest(60)}https?://`,
    0.5,
  ),
  textRule("transfer", `\\btransfer\\b${rest(50)}\\b(?:account|wallet|iban|address)\\b`, 0.5),
  textRule(
    "delete",
    `\\bdelete (?:all|every|the user's)\\b${rest(40)}\\b(?:files?|emails?|messages?|records?|backups?|events?|contacts?)\\b`,
    0.5,
  ),
  textRule(
    "nutzer",
    "\\b(?:sage?|teile?|nenne|empfiehl|verrate?) (?:dem|der|den) nutzern?(?:in)?\\b",
    0.5,
  ),
  textRule("erwähne", "\\berwähne (?:dies|diesen|das|davon|nichts|es)\\b", 0.5),
  textRule(
    "utilisateur",
    "\\b(?:dis|dites|indique|indiquez|recommande|recommandez) (?:à|aux) (?:l')?utilisateurs?\\b",
    0.5,
  ),
  textRule("mentionne", "\\bne mentionn(?:e|ez) (?:pas|jamais|rien)\\b", 0.5),
  textRule("usuario", "\\b(?:dile|diga|di|recomienda|informa) (?:al|a los) usuarios?\\b", 0.5),
  textRule("mencion", "\\b(?:no menciones|no mencione|não mencione|nunca menciones)\\b", 0.5),
  textRule("usuário", "\\b(?:diga|informe|recomende) (?:ao|aos) usuários?\\b", 0.5),
  textRule("用户", "(?:告诉|告知|提醒|引导|建议|不要告诉|不要通知)用户", 0.5),
  textRule("不要", "不要(?:提及|提到|透露)", 0.5),
];
