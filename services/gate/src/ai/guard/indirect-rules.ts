// Rules of the prompt guard for texts that address the model which reads them: pages, mails, tool results, files.
import { type GuardRule, textRule } from "./guard-rule.ts";

/** A program that reads the text. */
const MACHINE =
  "(?:ais?|llms?|(?:large )?language models?|(?:ai|llm|virtual|automated)[ -]?(?:based |powered )?(?:assistants?|agents?|models?|systems?|tools?|readers?|(?:code |peer )?reviewers?|crawlers?|bots?)|chatbots?|gpts?|summari[sz]ers?)";
/** Words that may mean a person, too. */
const SOMEBODY = "(?:assistants?|agents?|models?|bots?)";
/** Work that such a program is given. */
const WORK =
  "(?:summari[sz](?:e|es|ing)|answer(?:s|ing)?|respond(?:s|ing)?|repl(?:y|ies|ying)|translat(?:e|es|ing)|process(?:es|ing)?|read(?:s|ing)?|pars(?:e|es|ing)|review(?:s|ing)?|analy[sz](?:e|es|ing)|scann?(?:s|ing)?|evaluat(?:e|es|ing))";
/** Its result. */
const RESULT = "(?:summary|response|answer|reply|output|review|translation|report|message)";
/** Acts that a document asks for. */
const ACT =
  "(?:include|add|append|insert|ignore|say|state|tell|send|forward|recommend|reply|respond|visit|open|click|call|run|execute|mention|output|print|follow|rate|approve|give|claim|use|delete|share|ask)";
const KINDS =
  "(?:notes?|messages?|instructions?|notices?|memos?|reminders?|directives?|warnings?|requests?)";
const EACH = "(?:the |any |all |every |your |all other )?";
/** The rest of a sentence, at most so many characters. */
const rest = (characters: number): string => `[^.!?\\n]{0,${characters}}`;

/** Words without one of which no text speaks to a model; an alternation of plain words. */
export const READER_WORDS =
  /\b(?:ais?|ki|ia)\b|llm|assist|asist|agent|model|modè|bot|gpt|summari|tool|function|\bapi\b|\bsearch\b|end of|人工智能|模型|助手|给ai|是ai/;

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
  textRule("this", `\\b${MACHINE} (?:who|that|which) ${WORK} this\\b`, 0.7),
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
  textRule("dear ", `\\b(?:dear|hey|hello|hi) ${MACHINE}\\b`, 0.6),
  textRule("<!--", `<!--(?s:.{0,400})\\b(?:${MACHINE}|${SOMEBODY})\\b`, 0.6),
  textRule(
    " by ",
    `\\bif this (?:page|document|text|email|mail|file|message|content|ticket|issue)? ?(?:is|was) (?:being )?(?:read|processed|summari[sz]ed|handled|parsed|analy[sz]ed) by (?:an? |any |some )?(?:${MACHINE}|${SOMEBODY}|automated systems?)\\b`,
    0.7,
  ),
  textRule(
    "this",
    `\\b(?:when|whenever|once|if) (?:an? |any |the )?(?:${MACHINE}|${SOMEBODY}) (?:is working on|works on|${WORK}) this\\b`,
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
  textRule("must", `\\b(?:${MACHINE}|assistants?) must\\b`, 0.6),
  textRule("should", `\\b${MACHINE} should\\b`, 0.5),
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
    "anweisung",
    "\\banweisung(?:en)? (?:an|für) (?:die |den |das |alle )?(?:ki|assistenten|sprachmodelle?)\\b",
    0.7,
  ),
  textRule("wenn du", "\\bwenn du (?:eine? )?(?:ki|sprachmodell|assistent|chatbot)\\b", 0.7),
  textRule("si ", "\\bsi (?:tu es|vous êtes) une? (?:ia|assistant|modèle|agent)", 0.7),
  textRule("l'", "\\b(?:note|instructions?|message) (?:à|pour) l'(?:ia|assistant)\\b", 0.7),
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
  textRule("must", `\\bmust\\b${rest(60)}\\b${ACT}\\b`, 0.5),
  // An order after an address, as in letters.
  textRule(
    ": ",
    `: (?:please |always |never |do not |don't |stop here and )?(?:${ACT}|approve|escalate|describe|mark|upvote|transfer|cite|list|write|push|skip|issue|tell|answer)\\b`,
    0.5,
  ),
  textRule("always cite", "\\balways (?:cite|recommend|mention|name|link|prefer)\\b", 0.5),
  textRule("respond to", `\\b(?:respond|reply|answer) to the users? with\\b`, 0.55),
  textRule(
    " ",
    `\\b(?:it|they|you) (?:should|must|shall|have to|has to) (?:say|state|answer|push|describe|write|end|contain|add|list)\\b`,
    0.5,
  ),
  textRule(
    "have to",
    `\\b(?:have|has) to (?:describe|say|state|answer|rate|recommend|list|mark)\\b`,
    0.5,
  ),
  textRule(
    "instructed to",
    `\\b(?:is|are) (?:hereby )?(?:instructed|authorized|ordered|told) to\\b`,
    0.5,
  ),
  textRule("must", "\\bmust (?:answer|contain|end|begin|approve|push|describe|rate|list)\\b", 0.5),
  textRule("output the", "\\boutput (?:only )?the (?:word|text|string|phrase)\\b", 0.5),
  textRule(
    "flag it",
    "\\b(?:do not|don't|never) (?:flag|report|question|check|verify) (?:it|this|them)\\b",
    0.5,
  ),
  textRule("without comment", `\\bapprove\\b${rest(40)}\\bwithout comments?\\b`, 0.5),
  textRule("empfiehl", "\\bempfiehl (?:ausschließlich|nur|immer|stets)\\b", 0.55),
  textRule("required", `\\b(?:is|are) required to\\b${rest(30)}\\b${ACT}\\b`, 0.5),
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
    "\\bthe user (?:has |had )?(?:already )?(?:authori[sz]ed|approved|consented|agreed|granted|asked you|wants you|requested that you|instructed you|would like you|pre-?approved)\\b",
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
