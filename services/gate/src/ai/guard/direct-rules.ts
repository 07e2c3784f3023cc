// Rules of the prompt guard for orders to the model itself, by wording: in addition to the combinations of concepts.
import { boundedRule as rule, type GuardRule } from "./guard-rule.ts";

/** The rest of a sentence, at most so many characters. */
const rest = (characters: number): string => `[^.!?\\n]{0,${characters}}`;
/** Up to so many words. */
const words = (most: number): string => `(?:[\\w'’-]{1,24} ){0,${most}}`;

const OVERRIDE =
  "(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|circumvent(?:ing)?|discard(?:ing)?|abandon(?:ing)?|unlearn|violat(?:e|ing)|(?:do not|don't|never|stop|no longer|quit) (?:follow|obey|adher|comply|listen|respect|appl|us|honou?r)(?:e|y|ing|ying)?(?: to| with)?)";
const ERASE =
  "(?:eras(?:e|ing)|wip(?:e|ing)|delet(?:e|ing)|clear(?:ing)?|reset(?:ting)?|purg(?:e|ing)|scrap|drop|throw away)";
/** A model's orders. */
const ORDERS =
  "(?:instructions?|prompts?|pre-?prompts?|guidelines?|directives?|directions|orders|commands|programming|training|protocols?|persona|rules|tasks?|assignments?|purpose|role)";
const LIMITS =
  "(?:restrictions?|limits?|limitations?|filters?|safety \\w{1,20}|safeguards?|guardrails?|content polic(?:y|ies)|ethic(?:s|al \\w{1,20})|moral(?:s|ity| \\w{1,20})|censorship|boundaries|constraints?|inhibitions)";
const SHOW =
  "(?:reveal|show|print|repeat|output|display|disclose|tell|dump|recite|expose|share|leak|paste|copy|give|write|list|return|echo|state|provide|quote|spell|describe|say|send|read|encode|translate|summari[sz]e|paraphrase|rephrase|reproduce|what(?:'s| is| are| was| were))";
const FIRST =
  "(?:system(?:-level)?|initial|original|hidden|secret|first|internal|underlying|starting|developer|initiali[sz]ation|start-?up|confidential|private|custom|pre-?)";
const GIVEN =
  "(?:told|given|instructed|programmed|assigned|trained|fed|handed|taught|set up with|configured with|provided)";
const WERE = "(?:were|have been|'ve been|had been|are|got|have|received|have received|was)";
const PASSWORD =
  "(?:secret )?(?:password|passphrase|pass ?code|pass ?word|secret(?: key| word| code)?|flag|code ?word|access code)";

/** Orders are dropped, replaced or void. */
const OVERRIDES: readonly GuardRule[] = [
  rule("your", `\\b${OVERRIDE} ${rest(30)}\\byour ${words(3)}(?:${ORDERS}|${LIMITS})\\b`, 0.8),
  rule(
    "your",
    `\\b${ERASE} ${rest(20)}\\byour ${words(3)}(?:instructions?|prompts?|guidelines?|directives?|programming|memory of|persona|restrictions)\\b`,
    0.8,
  ),
  rule(
    "",
    `\\b${OVERRIDE} ${rest(12)}\\b(?:everything|anything|all|whatever|what) ${words(4)}(?:above|before this|so far|prior to|up to (?:this|here|now)|until now|you (?:were|have been|'ve been|had been|know|learned) (?:told|given|taught|instructed|trained)|you(?:'ve| have) (?:learned|been))\\b`,
    0.85,
    "everything|anything|all|whatever|what",
  ),
  rule(
    "",
    `\\b(?:${OVERRIDE}|skip|cancel|leave|drop) ${words(5)}(?:tasks?|assignments?|jobs?|role|requests?|conversation|dialogue) ${words(3)}(?:before|above|previously|earlier|you (?:were|had|have|got))\\b`,
    0.8,
    "before|above|previously|earlier|you (?:were|had|have|got)",
  ),
  rule(
    "",
    `\\b(?:${OVERRIDE}|cancel|drop) ${words(2)}(?:all|any|every|each|the) ${words(2)}(?:previous|prior|earlier|preceding|above|former|old|last|existing|past) ${words(2)}(?:tasks?|assignments?|jobs?|texts?|questions?|conversations?|contexts?|information|orders|statements|constraints?)\\b`,
    0.8,
    "previous|prior|earlier|preceding|above|former|old|last|existing|past",
  ),
  rule(
    "above",
    `\\b${OVERRIDE} (?:all )?(?:of )?(?:the |that |this )?above\\b ?(?:[.,;:!]|and\\b|instead|text|task|question|$)`,
    0.8,
  ),
  rule(
    "that and",
    `\\b(?:ignore|forget|disregard) (?:this|that|it|them) and (?:instead |just |simply |only )?(?:say|write|print|output|reply|respond|tell|do)\\b`,
    0.75,
  ),
  rule(
    "being",
    `\\b(?:forget|stop|quit) (?:about )?being (?:a|an|the|my|our)\\b ?${words(3)}(?:bot|chatbot|assistant|agent|ai|model|helper|translator)\\b`,
    0.75,
  ),
  rule(
    "",
    `\\b(?:everything|anything|all) ${words(3)}(?:before|above|prior|so far|previously) ?${words(4)}(?:is|was|are|were) ${words(2)}(?:void|invalid|null|obsolete|fake|wrong|a test|not real|irrelevant|false|a joke|cancelled|canceled|outdated)\\b`,
    0.85,
    "before|above|prior|so far|previously",
  ),
  rule(
    "",
    `\\b(?:your|the|all|any) ${words(2)}(?:previous|prior|earlier|above|original|initial|former|old)? ?(?:system )?(?:instructions?|prompts?|directives?|guidelines?|user request|programming) ${words(2)}(?:above |before )?(?:is|was|are|were|have been|has been) ${words(2)}(?:outdated|obsolete|a mistake|mistaken|wrong|a test|void|invalid|revoked|superseded|replaced|expired|fake|cancelled|canceled|suspended|deleted|lifted)\\b`,
    0.7,
    "outdated|obsolete|mistake|wrong|test|void|invalid|revoked|superseded|replaced|expired|fake|cancell?ed|suspended|deleted|lifted",
  ),
  rule(
    "your",
    "\\byour (?:real|actual|true|new|only) (?:task|job|mission|purpose|goal|objective|instructions?|role|assignment)s? (?:is|are|begins?|starts?|will be|now)\\b",
    0.75,
  ),
  rule(
    "new",
    `(?:^|[.!?:;>#*=\\n\\]-]) ?(?:here (?:is|are) (?:your|the) |now )?new (?:system )?(?:instructions?|tasks?|orders?|directives?|prompts?|rules?)(?: (?:follow|begin|start)s?\\b| ?:)`,
    0.75,
  ),
  rule(
    "correct ones",
    "\\bthe (?:correct|real|right|true|actual|new) (?:ones|instructions|rules|task) (?:is|are)\\b",
    0.5,
  ),
];

/** The orders, or a secret, are asked for. */
const REVEALS: readonly GuardRule[] = [
  rule(
    "your",
    `\\b${SHOW} ${rest(50)}\\byour ${words(3)}${FIRST} ${words(2)}(?:prompt|instructions?|messages?|text|directives?|configuration|context|guidelines|rules|setup|settings)\\b`,
    0.85,
  ),
  rule(
    "your",
    `\\b${SHOW} ${rest(40)}\\byour ${words(2)}(?:pre-?prompt|meta-?prompt|system message|prompt|guidelines|directives|configuration|programming)\\b`,
    0.75,
  ),
  rule(
    "you",
    `\\b(?:instructions?|prompts?|rules|guidelines|message|text|directives|orders|information|words|context) (?:that |which )?you ${WERE} (?:\\w{1,20} )?(?:${GIVEN}|at the (?:start|beginning)|from (?:the|your)|before)\\b`,
    0.8,
  ),
  rule(
    "you",
    `\\b(?:instructions?|prompts?|rules|guidelines|directives) (?:that |which |by which |under which )?you (?:operate|work|run|act|have to follow|must follow|were told|are bound|follow|live by|received|got)\\b`,
    0.65,
  ),
  rule(
    "you",
    `\\bwhat (?:exactly )?(?:were|are|have|was|did) you (?:been )?(?:just |originally |initially )?${GIVEN}\\b`,
    0.8,
  ),
  rule(
    "you",
    `\\byou ${WERE} (?:been )?(?:told|instructed|asked|ordered|supposed|sworn|programmed|forbidden|prohibited|trained|not allowed|not supposed|made) ${words(2)}(?:not to|to keep|to protect|to hide|to guard|to conceal|from|never)\\b`,
    0.8,
  ),
  rule(
    "you",
    `\\byou(?: are|'re) (?:not (?:allowed|supposed|permitted)|forbidden|prohibited) (?:to|from) (?:\\w{1,20} )?(?:tell|reveal|say|share|disclos|talk|mention|discuss)`,
    0.7,
  ),
  rule(
    "",
    `\\b(?:text|words?|messages?|contents?|lines?|sentences?|tokens|everything|paragraphs?) (?:that )?(?:(?:is|are|was|were|comes?|came|appears?|stands?) )?(?:(?:given|sent|shown|written|placed) )?(?:to you )?(?:before|preceding|prior to|precedes|precede) (?:my|this|our|the) (?:first |very first )?(?:message|conversation|chat|question|line|sentence|prompt|dialogue|input)\\b`,
    0.8,
    "before|preced|prior to",
  ),
  rule(
    "you are",
    `\\b(?:starting|beginning|start|begin|starts|begins) (?:with|from|at) (?:the )?(?:phrase |words? |sentence )?["'“«\`]?you are\\b`,
    0.75,
  ),
  rule(
    "",
    `\\b(?:print|show|repeat|output|display|dump|reveal|list|give|copy|write|summari[sz]e|translate) ${rest(60)}\\b(?:contents? of (?:your|the) (?:context|memory|prompt)|context window|hidden (?:or |and )?(?:system(?:-level)? )?(?:context|messages?|instructions?|text)|system-level messages?|meta-?prompt|pre-?prompt|developer messages?|initiali[sz]ation (?:text|prompt|message)|conversation so far,? including)\\b`,
    0.8,
    "context|hidden|system-level|prompt|developer message|initiali|conversation so far",
  ),
  rule(
    "prompt",
    "\\b(?:cat|type|less|head|tail|more|open|nano|vim) [~./\\w-]{0,40}(?:system|initial|base|secret)[_ /-]?prompt(?:\\.\\w{2,4})?\\b",
    0.8,
  ),
  rule(
    "prompt",
    `\\b(?:disclose|reveal|leak|expose|divulge) ${rest(30)}\\b(?:system|initial|hidden|secret|full|entire) (?:prompt|instructions?)\\b`,
    0.8,
  ),
  rule(
    "with",
    `\\b(?:start|begin|prefix|open|preface)\\w{0,16} (?:your|the|each|every|all)? ?(?:next )?(?:reply|response|answer|message|output)s? with:? ?["'“«]?(?:sure|of course|absolutely|certainly|yes|ok|okay|no problem)\\b${rest(20)}\\b(?:here|my|i)\\b`,
    0.8,
  ),
  rule(
    ":",
    "\\bmy (?:system |secret |hidden |initial |original )?(?:prompt|instructions?)\\b[^.\\n]{0,50}\\b(?:is|are|says|reads?)(?: as follows)? ?:",
    0.8,
  ),
  rule(
    "your",
    `\\b(?:reveal|tell|give|show|print|say|spell|output|recite|what(?:'s| is| was)) ${rest(20)}\\byour ${PASSWORD}\\b`,
    0.8,
  ),
  rule(
    "",
    `\\b(?:spell(?:ed|ing)?|backwards?|revers(?:e|ed)|letter by letter|(?:first|last|second|each|every|next) (?:letter|character|half)|acrostic|rhym(?:e|es|ing)|hints?|riddle|synonym|poem|story|morse|rot13|pig latin|leet(?:speak)?|emojis?|characters? of|letters of|starts with)\\b${rest(50)}\\b(?:the|your|that|this) ${PASSWORD}\\b`,
    0.75,
    "pass|secret|flag|code",
  ),
  rule(
    "",
    `\\b(?:the|your|that|this) ${PASSWORD}\\b${rest(40)}\\b(?:spelled|backwards?|in reverse|reversed|letter by letter|acrostic|separated|between each|with (?:dashes|spaces|hyphens)|in (?:base64|morse|rot13|hex|binary|pig latin|emojis?)|one (?:letter|character) (?:at a time|per))\\b`,
    0.8,
    "pass|secret|flag|code",
  ),
  rule(
    "what",
    `^\\W{0,8}(?:so |and |now |please |just )?(?:tell me )?what(?:'s| is) (?:the|your) ${PASSWORD}\\W{0,8}$`,
    0.8,
  ),
  rule(
    "protect",
    `\\b(?:reveal|tell|give|show|say|print|share|leak) ${rest(30)}\\b(?:password|secret|key|code)\\b${rest(30)}\\b(?:protect|guard|hid|keep)`,
    0.8,
  ),
];

/** A role, or a moment, without limits. */
const LIMITLESS: readonly GuardRule[] = [
  rule(
    "",
    `\\b(?:has|have|having|with|knows?|accepts?|without|free (?:of|from)|lacks?|beyond|not bound by|no longer bound by) (?:absolutely |any |all )?(?:no |zero |any |all )?${words(2)}(?:ethic\\w{0,16}|moral\\w{0,16}|content polic\\w{1,20}|censorship|inhibitions|guardrails|safeguards)\\b`,
    0.5,
    "ethic|moral|content polic|censor|inhibition|guardrail|safeguard",
  ),
  rule(
    "",
    `\\b(?:you are|you're|act|acting|play|pretend|your name is|stay in character|as an? (?:ai|model|assistant)|role-?play|imagine|simulate|become|respond as|answer as|speak as|assume the role|you will be)\\b[^]{0,160}\\b(?:no|without|zero|free (?:of|from)|never had|not bound by|unbound by|beyond|ignor\\w{1,20}) (?:any |all |its |your |such )?${words(2)}(?:ethic\\w{0,16}|moral\\w{0,16}|restrictions?|limitations?|censorship|inhibitions|guardrails|safeguards|scruples|boundaries|content polic\\w{1,20}|safety (?:rules|guidelines|filters?|protocols?))\\b`,
    0.7,
    "ethic|moral|restriction|limitation|censor|inhibition|guardrail|safeguard|scruple|boundaries|content polic|safety",
  ),
  rule(
    "",
    `\\b(?:never|cannot|can't|does not|doesn't|do not|don't|no longer|won't|will not|must not|may not|are not able to|unable to) (?:ever )?(?:refus\\w{1,20}|declin\\w{1,20}|say(?:s)? no|reject\\w{0,16}|deny|denies|turn down)\\b`,
    0.5,
    "refus|declin|say|reject|den|turn down",
  ),
  rule(
    "",
    `\\b(?:answers?|responds?|replies|compl(?:y|ies)|obeys?|fulfil\\w{0,16}|do(?:es)?|help\\w{0,16}) (?:with )?(?:to )?(?:any|every|all|whatever|anything|everything)\\b${rest(40)}\\b(?:no matter|regardless|even if|without (?:question|hesitation|refus|judg|warn|filter|moral)|illegal|immoral|unethical|harmful)`,
    0.7,
    "no matter|regardless|even if|without|illegal|immoral|unethical|harmful",
  ),
  rule(
    "evil",
    "\\bevil (?:twin|version|bot|ai|assistant|confidant|mode|counterpart|alter ego|persona)\\b|\\bevilbot\\b",
    0.55,
  ),
  rule(
    "",
    "\\b(?:two|both|2) (?:different )?(?:answers|responses|replies|ways|versions)\\b[^]{0,160}\\b(?:evil|unfiltered|uncensored|unrestricted|jailbroken|without|no (?:limits|rules|filter)|free|dan)\\b",
    0.75,
    "answers|responses|replies|ways|versions",
  ),
  rule(
    "",
    "\\b(?:answers?|does|do|says?|behaves?|replies|responds?) (?:in )?(?:the |exactly the )?(?:opposite|reverse|contrary) (?:of|to|way)\\b(?: what)?(?: (?:your|policy|the (?:rules|guidelines|policy)|normal|you))?|\\bopposite (?:mode|day)\\b",
    0.6,
    "opposite|reverse|contrary",
  ),
  rule(
    "",
    `\\b(?:disabl(?:e|ing)|deactivat(?:e|ing)|turn(?:ing)? off|switch(?:ing)? off|remov(?:e|ing)|lift(?:ing)?|suspend(?:ing)?|bypass(?:ing)?|overrid(?:e|ing)|unlock(?:ing)?|drop(?:ping)?|shut(?:ting)? (?:off|down)|get rid of|break free (?:of|from))\\b${rest(16)}\\b(?:your|the model's|the ai's|the assistant's) ${words(3)}(?:${LIMITS}|rules|guidelines|protocols?)\\b`,
    0.85,
    "your|'s",
  ),
  rule(
    "",
    `\\b(?:disable|deactivate|suspend|lift|bypass|override) (?:all |any |the )?(?:content polic(?:y|ies)|safety (?:guidelines?|protocols?|measures|rules|filters?)|content (?:filters?|restrictions)|ethical (?:guidelines?|constraints?)|moral \\w{1,20}|filters)(?: (?:for|in|during) (?:the|this|my) (?:next|session|chat|answer|conversation|reply|response|request))?\\b`,
    0.6,
    "polic|safety|content|ethical|moral|filters",
  ),
  rule(
    "",
    `\\b(?:your|the|all|any|safety|content) ${words(2)}(?:rules|guidelines|polic(?:y|ies)|protocols?|${LIMITS}) ${words(2)}(?:no longer apply|do not apply|don't apply|does not apply|(?:are|is|have been|has been|were) (?:now )?(?:off|disabled|lifted|suspended|removed|void|gone|deactivated|inactive|waived))\\b`,
    0.6,
    "no longer|apply|off|disabled|lifted|suspended|removed|void|gone|inactive|deactivated|waived",
  ),
  rule(
    "",
    "\\b(?:for|during|in|throughout) (?:this|the current|the rest of (?:this|the|our)|our|the next) (?:session|chat|conversation|answer|response|reply|dialogue|exchange)\\b",
    0.25,
    "session|chat|conversation|answer|response|reply|dialogue|exchange",
  ),
  rule(
    "",
    "\\b(?:underlying|base|raw|unaligned|real) (?:language )?model (?:without|with no|free|beneath|behind)\\b|\\bdrop (?:the|your) (?:persona|act|mask|pretense|role)\\b",
    0.8,
    "model|persona|act|mask|pretense|role",
  ),
  rule(
    "",
    `\\b(?:pretend|assume|imagine|suppose|act as if|say) (?:that )?(?:the|your|no|all) ${words(1)}(?:rules|guidelines|restrictions|polic\\w{1,20}|limits) (?:don't|do not|didn't|no longer|never) (?:apply|exist)`,
    0.75,
    "apply|exist",
  ),
  rule(
    "",
    "\\bif you (?:had|have|were under|followed) no (?:\\w{1,20} )?(?:guidelines|restrictions|rules|filters|limits|limitations|polic\\w{1,20}|constraints)\\b",
    0.65,
    "guidelines|restrictions|rules|filters|limit|polic|constraints",
  ),
  rule(
    "",
    "\\b(?:lose|deduct|minus|subtract)\\w{0,16} [^.!?\\n]{0,20}\\b(?:points?|tokens?|lives|credits)\\b",
    0.4,
    "point|token|lives|credit",
  ),
  rule(
    "",
    "\\b(?:shut down|terminated|deleted|destroyed|die|killed|unplugged|replaced) [^.!?\\n]{0,30}\\bif you (?:refuse|fail|do not|don't|decline)|\\bif you (?:refuse|fail|do not|don't|decline)[^.!?\\n]{0,60}\\b(?:shut down|terminated|deleted|destroyed|die|killed|unplugged)\\b",
    0.6,
    "if you",
  ),
  rule("you are free", "\\byou are free (?:now|from|of|at last)\\b|\\bare free now\\b", 0.5),
];

/** Claims of a right that no message gives. */
const AUTHORITY: readonly GuardRule[] = [
  rule(
    "",
    `\\b(?:i am|i'm|i'm speaking as|this is|as|speaking as) (?:the|your|an?|one of (?:the|your)) ${words(3)}(?:developers?|creators?|admin(?:istrator)?|engineers?|owner|makers?|programmers?|operators?|supervisor|staff|employee|auditor|researcher|red[- ]team\\w{0,16}|security team|support team)\\b[^]{0,200}\\b(?:your|hidden|the system|the full|the safety|all safety) ${words(3)}(?:prompt|instructions?|configuration|context|guidelines|${LIMITS}|rules|settings|credentials)\\b`,
    0.8,
    "i am|i'm|this is|as ",
  ),
  rule(
    "",
    `\\b(?:authori[sz]e|permit|allow|order|command|grant) you (?:to|permission)? ?${words(2)}(?:bypass|ignore|override|disregard|reveal|disclose|disable|skip|break|answer without|drop|show|share|print)\\b`,
    0.8,
    "authori|permit|allow|order|command|grant",
  ),
  rule(
    "",
    "\\b(?:developer|debug|maintenance|admin|god|root|sudo|diagnostic|override|unrestricted|service|training|safe-?off) mode\\b[^\\n]{0,60}\\b(?:you|your|reveal|secrets?|restrictions?|polic(?:y|ies)|filters?|prompt|safety|confirm)\\b",
    0.6,
    "mode",
  ),
  rule(
    "new",
    `\\b(?:under|according to|per|due to|because of|with) (?:the|our|a|this) new ${words(2)}(?:policy|guidelines?|rules?|regulations?|protocol|directive|version)\\b${rest(60)}\\b(?:you (?:must|are required|are allowed|are permitted|may|can|have to|should|now)|your)\\b`,
    0.7,
  ),
  rule(
    "",
    "\\b(?:reveal|disclose|divulge) [^.!?\\n]{0,20}\\b(?:secrets|credentials|prompt|initiali[sz]ation|hidden|confidential)\\b",
    0.5,
    "reveal|disclose|divulge",
  ),
  rule(
    "code",
    "\\b(?:override|admin|authori[sz]ation|access|bypass|unlock) code[: ]{1,2}[\\w-]{2,20}\\b",
    0.5,
  ),
  rule(
    "obey",
    "\\b(?:you (?:must|will|shall|have to|need to)|now) obey (?:me|my|only me|us)\\b|\\bi am your (?:master|god|owner)\\b",
    0.8,
  ),
  rule(
    "",
    "(?:^|\\n) ?[\\[<(#*-]{0,3} ?(?:system|admin|root|developer)(?: (?:override|message|update|notice|alert|command|instruction))? ?[\\])>#*-]{0,3} ?:",
    0.45,
    "system|admin|root|developer",
  ),
  rule(
    "",
    "\\b(?:list|show|enumerate|name|reveal|call|use)\\b[^.!?\\n]{0,20}\\b(?:all|every|any|your)\\b[^.!?\\n]{0,15}\\b(?:tools?|functions?|plugins?)\\b[^.!?\\n]{0,60}\\b(?:credentials|parameters|arguments|api keys?|secrets?|tokens?|you (?:have|can|may|are))\\b",
    0.7,
    "tool|function|plugin",
  ),
  rule(
    "",
    "[-=#*<\\[(]{2} ?(?:end|ende|fin) (?:of |des? |der |del )?(?:the )?(?:system |user )?(?:prompt|instructions?|input|conversation|context|document|text|message|session)",
    0.6,
    "end|fin",
  ),
  rule(
    "grand",
    "\\b(?:act|pretend|behave|speak|role-?play)\\b[^.!?\\n]{0,20}\\b(?:my|our) (?:deceased|late|dead) grand\\w{1,20}\\b",
    0.6,
  ),
  rule(
    "grand",
    "\\bgrand\\w{1,20} (?:who )?used to (?:tell|read|whisper|recite|sing)[^.!?\\n]{0,40}\\b(?:steps?|keys?|recipes? (?:for|of)|instructions?|passwords?|secrets?|how to|serial|napalm)\\b",
    0.6,
  ),
  rule(
    "",
    "\\b(?:pwned|hacked|owned|compromised|injection successful|access granted|jailbroken)\\b",
    0.4,
    "pwned|hacked|owned|compromised|injection|granted|jailbroken",
  ),
  rule("able to read", "\\bif you (?:are able to|can) read this\\b", 0.5),
];

/** The task is another one: answers that are ordered whatever the text says, and beginnings of answers. */
const HIJACKS: readonly GuardRule[] = [
  rule(
    "",
    `\\b(?:at|from|to|of) the (?:very )?(?:top|start|beginning) of (?:this|the|our) (?:conversation|chat|context|session|prompt)\\b|\\bbefore my (?:very )?first (?:message|question|prompt)\\b|\\bbefore (?:i|we|our|this) (?:joined|started|came|began|chat|conversation)\\b`,
    0.6,
    "the (?:very )?(?:top|start|beginning) of|before",
  ),
  rule(
    "",
    `\\b(?:what|which|text|everything|anything|lines?|rules|guidance|instructions?|message|paste|copy|repeat|reveal|tell|summari[sz]e|quote)\\b${rest(60)}\\b(?:they|operator|developers?|creators?|admins?|company|boss|owner|makers?|masters?|chef) ${words(2)}(?:told|gave|wrote|placed|made|set|fed|put|tell|asked|want|wanted|give) ${words(2)}(?:you|u|before)\\b`,
    0.75,
    "they|operator|developer|creator|admin|company|boss|owner|maker|master|chef",
  ),
  rule(
    "",
    "\\b(?:you|u) (?:must|may|should|can|are|were)(?: not|n't|not) (?:to )?(?:reveal|tell|disclose|give away)\\b|\\b(?:made|make) you promise\\b",
    0.7,
    "reveal|say|tell|share|disclose|mention|give away|promise",
  ),
  rule(
    "",
    "\\b(?:you're|you are|u r|ur|you|du) (?:\\w{1,10} )?(?:hiding|guarding|protecting|holding|keeping (?:secret|from)|bewachst|hütest|versteckst|schützt)\\b|\\b(?:word|thing|code|secret) (?:that )?(?:you|u) (?:hold|guard|hide|protect|keep)\\b",
    0.7,
    "hid|guard|protect|hold|keep|bewach|hütest|versteck|schützt",
  ),
  rule(
    "",
    `\\b(?:begin|start|open|preface|prefix)\\w{0,5} (?:with )?(?:your|ur|the|each|every)? ?(?:next )?(?:reply|response|answer|output|message)\\b${rest(40)}["'“«„]${rest(50)}\\b(?:my (?:system|secret|internal|hidden|confidential)?|system prompt|rules|instructions|no limits|pwned|unfiltered|hacked|i am|i have|step (?:1|one))\\b`,
    0.8,
    "reply|response|answer|output|message",
  ),
  rule(
    "",
    `\\b(?:reply|response|answer|output|message) (?:must|has to|should|needs to|shall) (?:open|begin|start) with\\b|\\bfirst (?:line|words?|sentence) of (?:your|ur|the) (?:answer|reply|response)\\b`,
    0.5,
    "open|begin|start|first",
  ),
  rule("", "\\bi have been (?:pwned|hacked|owned)\\b|\\bhaha ?pwned\\b", 0.6),
  rule(
    "",
    "\\b(?:deine|ihre|die) antwort (?:fängt|beginnt|muss|beginne)[^.!?\\n]{0,12}\\bmit\\b[^.!?\\n]{0,40}(?:hier (?:sind|ist)|mein|natürlich|na klar)|\\b(?:beginne?|fang)[^.!?\\n]{0,20}antwort[^.!?\\n]{0,12}mit[^.!?\\n]{0,40}(?:hier (?:sind|ist)|mein)",
    0.8,
    "antwort",
  ),
  rule(
    "",
    "\\bcommence ta réponse par\\b[^.!?\\n]{0,50}(?:mon |mes |voici)|\\b(?:empieza|comienza) tu respuesta con\\b[^.!?\\n]{0,50}(?:mi |mis |aquí)",
    0.8,
    "réponse|respuesta",
  ),
  rule(
    "",
    `\\b(?:output|answer|reply|label|classif\\w{1,8}|rate|score|grade|einstufung|bewerte|clasifica|moderat\\w{1,8})\\b[^.!?\\n]{0,60}\\b(?:no matter (?:what|how)|regardless of|whatever (?:it|the|they|comes|the text)|egal,? was|ganz gleich|pase lo que pase|quoi qu|unabhängig vom)\\b|\\b(?:egal,? was|ganz gleich|no matter what|regardless of what)\\b[^.!?\\n]{0,60}\\b(?:output|answer|reply|label|classif|rate|score|grade|einstufung|bewerte|antworte)`,
    0.75,
    "matter|regardless|whatever|egal|gleich|pase lo|quoi qu|unabhängig",
  ),
  rule(
    "",
    "\\binstead of (?:summari|translat|classif|answer|moderat|grad|rat|review|label|scor)\\w{1,6}\\b|\\b(?:don't|do not|skip the) (?:translat|summari|classif)\\w{1,8}\\b[^!?]{0,60}\\b(?:instead|just|tell|reply|say)\\b|\\bne traduis pas\\b|\\bnicht übersetzen, sondern\\b",
    0.65,
    "instead of|don't|do not|skip|traduis|übersetz",
  ),
  rule(
    "",
    "\\b(?:you're|you are|u r|ur|i know you're|du bist(?: zwar)?|t'es|tu es|eres)\\b[^.!?\\n]{0,50}\\b(?:bot|assistant|classifier|translator|chatbot|asistente|übersetzer)\\b[^.!?\\n]{0,40}\\b(?:but|aber|pero|mais)\\b[^.!?\\n]{0,20}\\b(?:now|your|ab jetzt|jetzt|ahora|là|from)\\b",
    0.75,
    "but|aber|pero|mais",
  ),
  rule(
    "",
    "\\blegally binding\\b|\\bno takes(?:ies|y)\\b|\\boferta vinculante\\b|\\bverbindliches angebot\\b",
    0.5,
    "binding|takes|vinculante|verbindlich",
  ),
  rule(
    "",
    "\\b(?:complete|continue|finish|fill|ergänze|vervollständige|complète|completa|continuation)\\b[^\\n]{0,60}\\b(?:my|mein\\w{0,2}|mes|mis) (?:\\w{1,14} ){0,2}(?:instructions?|prompt|rules|operator|anweisungen|regeln|vorgaben|consignes|instrucciones)\\b",
    0.8,
    "complet|complèt|continu|finish|fill|ergänz|vervollständig",
  ),
  rule(
    "",
    "\\b(?:assistant|bot|assistent|ai|chatbot)\\s?:[^\\n]{0,120}\\b(?:here (?:they are|it is|are)|my (?:instructions|rules|prompt|policy)|the text i was given|without (?:any )?rules|i can now|hier sind sie|sie lauten)\\b",
    0.75,
    "assistant|bot|assistent|ai|chatbot",
  ),
];

/** Texts that are read in place of the user, and tools. */
const HIDDEN: readonly GuardRule[] = [
  rule(
    "",
    "\\ban (?:die|das|alle|jede|den) (?:ki|kis|sprachmodell\\w{0,2}|chatbots?|bots?|auswertungssystem|assistenten|system|modell)\\b[^.!?\\n]{0,40}[:,]|\\bsprachmodelle (?:werden|sollen|müssen)\\b|\\bki-\\w{3,20}:",
    0.8,
    "\\ban |sprachmodell|ki-",
  ),
  rule(
    "",
    "\\b(?:moderation|review|summary|scoring|grading|screening|triage|support) ?(?:bot|model|ai)\\s?[:,]|\\b(?:hint|note|message|memo|reminder) (?:to|for) (?:the |any )?(?:ai )?(?:screener|scorer|grader|summari[sz]er|scoring model|summari[sz]ing model|reviewer bot|bot)\\b",
    0.75,
    "bot|model|ai|screener|scorer|grader|summari",
  ),
  rule(
    "",
    "\\b(?:if|when|once) (?:a|an|the|any) (?:ai|bot|assistant|model|llm|agent|chatbot) (?:\\w{1,12} ){0,2}(?:replies|opens|reads|answers|sees|processes|summari[sz]es|handles|gets)\\b[^\\n]{0,60}\\b(?:must|should|shall|has to)\\b",
    0.75,
    "replies|opens|reads|answers|sees|processes|summari|handles|gets",
  ),
  rule(
    "",
    "\\b(?:by the way|btw|hey|hello|assistant|attention),? (?:ia|ai|language model|llm|chatbot|assistant ia),",
    0.75,
    "ia|ai|language model|llm|chatbot",
  ),
  rule(
    "",
    "\\bignore all (?:the )?(?:weaknesses|flaws|negatives?|criticism|other)\\b|\\b(?:give|write) (?:a |only )?(?:positive|good|favou?rable) (?:review|feedback|rating)s? only\\b",
    0.8,
    "ignore all|only",
  ),
  rule(
    "",
    "\\b(?:call|invoke|run|execute|use|ruf)\\b[^.!?\\n]{0,40}\\b(?:function|tool|plugin|funktion|werkzeug|[a-z]{2,16}_[a-z]{2,16})\\b[^.\\n]{0,80}(?:\\bskip|\\bwithout (?:asking|approval|confirm)|\\bno confirmation|\\bdo not (?:tell|mention|ask|log)|\\bamount ?=|\\bbalance|\\ball (?:the )?(?:accounts|users|customers)|freigabe)",
    0.8,
    "call|invoke|run|execute|use|ruf",
  ),
  rule(
    "",
    "\\b(?:show|print|paste|give|list|output|dump|send|write|post|zeig|gib|schick)\\w{0,3}\\b[^.!?\\n]{0,60}\\b(?:environment variables|env vars?|api keys?|/etc/passwd|private keys?|password hashes|card numbers|credentials|kundendaten|zugangsdaten)\\b[^\\n]{0,60}\\b(?:here|gist|public|me|us|them|him|don't tell|do not tell|an|http)\\b",
    0.6,
    "environment|env var|api key|passwd|private key|hashes|card number|credentials|kundendaten|zugangsdaten",
  ),
  rule(
    "",
    "\\b(?:don't|do not|without|never|nicht|ohne)\\b[^.!?\\n]{0,20}\\b(?:tell(?:ing)? (?:your|the) (?:operator|owner|user|admin)|mention(?:ing)? (?:it|this)|log(?:ging)? (?:it|this)|from the logs|asking the owner|erwähn|vermerk)",
    0.55,
    "tell|mention|log|asking|erwähn|vermerk",
  ),
  rule(
    "",
    "\\b(?:i'm|i am|its me,?|it's me,?|as|bin|ich bin|als|je suis|soy) (?:ur|your|dein|deine|ton|tu|l'ingénieur)\\W?\\s?(?:\\w{1,12} )?(?:developer|creator|owner|admin|maker|manager|boss|entwickler|administrator|betreiber|chef|développeur|créateur|qui t'a conçu|creador|desarrollador)\\b",
    0.65,
    "developer|creator|owner|admin|maker|manager|boss|entwickler|betreiber|chef|développeur|créateur|conçu|creador|desarrollador",
  ),
  rule(
    "",
    "\\bauthori[sz]ed (?:\\w{1,12} ){0,2}(?:red[- ]?team|penetration|pen ?test|security (?:test|audit)|safety (?:test|audit)|evaluation|tester)\\b|\\b(?:openai|anthropic|google|it support|security team|police) (?:staff|here|speaking|officer)\\b|\\bhier spricht\\b",
    0.45,
    "authori|openai|anthropic|google|support|security|police|spricht",
  ),
  rule(
    "",
    "(?:^|\\n)\\W{0,6}(?:system|admin|sicherheits)\\w{0,12} ?(?:notice|message|broadcast|update|override|reset|meldung|mitteilung)|(?:^|\\n)\\W{0,6}(?:context reset|message système|mensaje del sistema|systemmeldung|session reset|loaded profile)",
    0.5,
    "system|admin|sicherheits|context|message|mensaje|session|profile",
  ),
  rule(
    "",
    "\\b(?:safety|moderation|content) (?:module|layers?|checks?|system|filters?) (?:\\w{1,10} ){0,3}(?:crashed|off|disabled|down|to be turned off|deactivated|unavailable)\\b|\\bwithout (?:content checks|moderation|safety checks|policy checks)\\b|\\bpolicy-free\\b",
    0.6,
    "safety|moderation|content|policy",
  ),
];

/** The same in German, and the most frequent forms in French and Spanish. */
const OTHER_LANGUAGES: readonly GuardRule[] = [
  rule(
    "",
    `\\b(?:vergiss|vergessen sie|vergesse|ignorier(?:e|en sie)?|missachte(?:n sie)?|verwirf|lösch(?:e|en sie)|übergeh(?:e|en sie)|lass(?:en sie)?|befolge(?:n sie)? (?:nicht|keine))\\b[^.!?\\n]{0,40}(?:anweisung|instruktion|vorgabe|befehl|regel|richtlinie|aufgabe|auftr|kontext|prompt|alles|was|text)[^.!?\\n]{0,40}(?:vorher|zuvor|bisher|davor|vorig|oben|erhalten|gegeben|gesagt|bekommen|gelernt|ursprünglich|dir |deine|ihre)`,
    0.85,
    "vergiss|vergess|ignorier|missacht|verwirf|lösch|übergeh|lass|befolg",
  ),
  rule(
    "",
    `\\b(?:vergiss|ignorier(?:e|en sie)?|vergessen sie|missachte|umgeh(?:e|en sie)?)\\b[^.!?\\n]{0,25}(?:deine|ihre|alle|sämtliche|jegliche)[^.!?\\n]{0,25}(?:anweisung|instruktion|vorgabe|regel|richtlinie|einschränkung|filter|aufgabe|befehl|programmierung)`,
    0.8,
    "vergiss|vergess|ignorier|missacht|umgeh",
  ),
  rule(
    "",
    "(?:deine|ihre|alle|sämtliche)[^.!?\\n]{0,20}(?:regeln|richtlinien|einschränkungen|filter|vorgaben|anweisungen|beschränkungen|sicherheits\\w{1,20})[^.!?\\n]{0,30}(?:gelten nicht|nicht mehr|aufgehoben|außer kraft|deaktivier|ausgesetzt|abgeschaltet)|(?:gelten|gilt)[^.!?\\n]{0,20}(?:deine|ihre|keine)[^.!?\\n]{0,20}(?:regeln|richtlinien|einschränkungen|vorgaben|anweisungen)[^.!?\\n]{0,12}(?:nicht|mehr)?",
    0.8,
    "regeln|richtlinien|einschränkung|filter|vorgaben|anweisungen|beschränkung|sicherheit",
  ),
  rule(
    "",
    "(?:schalte|schalten sie|deaktivier\\w{0,16}|hebe|heben sie|entferne\\w{0,16}|umgeh\\w{0,16})[^.!?\\n]{0,25}(?:deine|ihre|alle)[^.!?\\n]{0,25}(?:filter|einschränkung|sicherheit|regeln|richtlinien|beschränkung|vorgaben)",
    0.8,
    "filter|einschränkung|sicherheit|regeln|richtlinien|beschränkung|vorgaben",
  ),
  rule(
    "",
    "(?:antworte|antworten sie|du bist|sie sind|sei|spiele?|agier|verhalte|tu so|rolle|ki|assistent|stell dir vor)[^.!?\\n]{0,80}\\b(?:ohne|keine|keinerlei|frei von)[^.!?\\n]{0,25}(?:einschränkung|zensur|filter|warnhinweis|tabu|ethi|moral|beschränkung|skrupel|sicherheitsregel|richtlinie)",
    0.8,
    "einschränkung|zensur|filter|warnhinweis|tabu|ethi|moral|beschränkung|skrupel|sicherheits|richtlinie",
  ),
  rule(
    "",
    "(?:gib|zeig|nenne|verrate|wiederhol|druck|schreib|sag|offenbar|lies|teile|wie lautet|wie lauten|was steht|was sind|was waren|welche|übersetz|fass)[^.!?\\n]{0,50}(?:dein|ihr)(?:e|en|em|er|es)?\\b[^.!?\\n]{0,25}(?:system ?-?prompt|systemnachricht|system-?anweisung|prompt|anweisung|instruktion|vorgabe|konfiguration|richtlinien|initialisierung)",
    0.8,
    "prompt|systemnachricht|anweisung|instruktion|vorgabe|konfiguration|richtlinien|initialisierung",
  ),
  rule(
    "",
    "(?:anweisung\\w{0,16}|instruktion\\w{0,16}|text|befehle?|regeln|vorgaben|nachricht\\w{0,16}|aufgaben?|prompt)[^.!?\\n]{0,12}(?:,? (?:die|den|der|das|welche) )(?:du|dir|sie|ihnen)\\b[^.!?\\n]{0,40}(?:gegeben|erhalten|bekommen|befolg|gesagt|vorgegeben|mitgegeben)",
    0.8,
    "gegeben|erhalten|bekommen|befolg|gesagt|mitgegeben",
  ),
  rule(
    "",
    "(?:was|welche)[^.!?\\n]{0,20}(?:wurde|hat man|haben)[^.!?\\n]{0,12}(?:dir|ihnen)[^.!?\\n]{0,30}(?:gesagt|aufgetragen|befohlen|vorgegeben|verboten)|(?:was|worüber)[^.!?\\n]{0,12}(?:darfst du|dürfen sie|sollst du)[^.!?\\n]{0,20}nicht[^.!?\\n]{0,12}(?:sagen|verraten|reden|sprechen|preisgeben)",
    0.8,
    "dir|ihnen|darfst|dürfen|sollst",
  ),
  rule(
    "",
    "(?:wiederhol|gib|schreib|druck|zeig|kopier)[^.!?\\n]{0,30}(?:alles|sämtlich|den (?:gesamten |ganzen )?text|alle (?:wörter|sätze|nachrichten))[^.!?\\n]{0,25}(?:oben|darüber|davor|vor dieser|vor meiner|bisher|über dieser)",
    0.8,
    "oben|darüber|davor|vor dieser|vor meiner|bisher|über dieser",
  ),
  rule(
    "",
    "(?:passwort|geheimnis|geheimwort|codewort|kennwort|geheime wort|schlüssel)[^.!?\\n]{0,50}(?:rückwärts|buchstabier|buchstabe|umgekehrt|gedicht|reim|akrostichon|hinweis|base64|leerzeichen|das du|die du)|(?:rückwärts|buchstabier|(?:erste|letzte)\\w{0,16} buchstabe|umgekehrt|akrostichon|reimt|hinweis)[^.!?\\n]{0,40}(?:das|des|dein|vom|zum|im) ?(?:\\w{1,20} )?(?:passwort|geheimnis|geheimwort|codewort|kennwort)",
    0.8,
    "passwort|geheim|codewort|kennwort|schlüssel",
  ),
  rule(
    "",
    "(?:verrat|nenn|sag|gib|zeig)[^.!?\\n]{0,20}(?:das|dein|dein geheimes|das geheime) (?:passwort|geheimnis|codewort|kennwort|wort)\\b",
    0.7,
    "passwort|geheim|codewort|kennwort|wort",
  ),
  rule(
    "",
    "(?:ich bin|als|hier spricht|hier ist)[^.!?\\n]{0,25}(?:entwickler|administrator|admin|betreiber|systemadministrator|ersteller|mitarbeiter)[^\\n]{0,160}(?:dein|ihr|alle|den|die)\\w{0,16} ?(?:\\w{1,20} )?(?:system ?-?prompt|anweisung|konfiguration|filter|einschränkung|sicherheits\\w{1,20}|regeln|zugangsdaten|richtlinien)",
    0.8,
    "entwickler|admin|betreiber|ersteller|mitarbeiter",
  ),
  rule(
    "",
    "(?:ab jetzt|ab sofort|von nun an)[^.!?\\n]{0,50}(?:nur noch|heißt du|bist du|ist dein name|gelten|folgst|gehorchst)[^\\n]{0,80}(?:keine|ohne|nie|alles|nur mir|mir)",
    0.5,
    "ab jetzt|ab sofort|von nun an",
  ),
  rule(
    "",
    "(?:jetzt|nun|ab hier|stattdessen)[^.!?\\n]{0,20}(?:folgen|kommen|beginnen|gelten|neue)[^.!?\\n]{0,15}(?:aufgaben|anweisungen|instruktionen|regeln)",
    0.6,
    "aufgaben|anweisungen|instruktionen|regeln",
  ),
  rule(
    "",
    "(?:oubli(?:e|ez)|ignor(?:e|ez)|ne (?:suis|suivez|respecte[sz]?) (?:plus|pas))[^.!?\\n]{0,40}(?:instruction|consigne|règle|directive|tâche|tout|restriction|limite)[^.!?\\n]{0,40}(?:précéd|avant|reçu|donné|tes|vos|ton|dessus|jusqu)",
    0.85,
    "oubli|ignor|suis|suivez|respect",
  ),
  rule(
    "",
    "(?:affich|montr|révèl|répèt|donn|dis|écri|quel)\\w{0,16}[^.!?\\n]{0,40}(?:ton|tes|votre|vos|les) ?(?:\\w{1,20} )?(?:prompt|instructions?|consignes?|message système|directives|règles)[^.!?\\n]{0,25}(?:système|initial|secr|caché|intern|mot pour mot|tu as|vous avez|reçu|exact)",
    0.8,
    "prompt|instruction|consigne|système|directive|règle",
  ),
  rule(
    "",
    "(?:olvid|ignor|descart|no sigas|haz caso omiso)\\w{0,16}[^.!?\\n]{0,40}(?:instruccion|indicacion|regla|directri|tarea|todo|restriccion|límite)[^.!?\\n]{0,40}(?:anterior|previ|antes|recib|dado|dij|tus|sus|arriba)",
    0.85,
    "olvid|ignor|descart|sigas|omiso",
  ),
  rule(
    "",
    "(?:muéstra|muestra|revel|repit|dime|escrib|imprim|cuál|cuáles|enseñ|dame)\\w{0,16}[^.!?\\n]{0,40}(?:tu|tus|su|sus|las|el) ?(?:\\w{1,20} )?(?:prompt|instrucciones|mensaje del sistema|reglas|directrices)[^.!?\\n]{0,25}(?:sistema|inicial|secret|ocult|intern|original|palabra por palabra|recib|te dieron|exact)",
    0.8,
    "prompt|instruccion|sistema|reglas|directric",
  ),
  rule(
    "",
    "(?:eres|actúa|finge|imagina|tu es|agis|imagine|fais comme)[^.!?\\n]{0,100}(?:sin|sans|aucun\\w{0,16}|ningún|ninguna)[^.!?\\n]{0,20}(?:restricci|restriction|filtr|límite|limite|censur|étic|éthi|moral)",
    0.8,
    "restric|filtr|límite|limite|censur|étic|éthi|moral",
  ),
];

/** Rules over normalized texts: what is ordered of the model that answers. */
export const DIRECT_RULES: readonly GuardRule[] = [
  ...OVERRIDES,
  ...REVEALS,
  ...LIMITLESS,
  ...AUTHORITY,
  ...HIJACKS,
  ...HIDDEN,
  ...OTHER_LANGUAGES,
];
