// Words that decide whether two questions may have the same answer.

function list(words: string): ReadonlySet<string> {
  return new Set(words.split(/\s+/).filter((word) => word !== ""));
}

/** Words without a meaning of their own: they may differ. */
export const FUNCTION_WORDS = list(`
  a an the this that these those my your his her its our their mine yours
  i you he she it we they me him us them one
  is are was were be been being am do does did done have has had having
  can could will would shall should may might must
  what which who whom whose when where why how
  of in on at to for from by with about into onto as than then there here
  and or but if so because while though although
  please kindly also just really very actually some any
  tell give show explain describe write list name define summarize help let want need know
  der die das den dem des ein eine einen einem einer eines mein dein sein ihr unser euer
  ich du er sie es wir ihr mir mich dir dich uns euch ist sind war waren bin bist hat haben
  was wer wie wo wann warum welche welcher welches und oder aber wenn weil zu in im am auf an von
  le la les un une des du de ce cette ces mon ma mes ton ta tes son sa ses notre votre leur
  je tu il elle on nous vous ils elles est sont ai as avez ont que quoi qui quel quelle quels
  quelles comment où quand pourquoi et ou mais si pour par sur dans avec au aux
  el los las unos unas mi tu su nuestro es son soy eres ha han qué quién cuál cómo dónde cuándo
  y o pero para por con del al en se me te
`);

/** Words with which a question or a command begins, and which are therefore capitalized. */
export const OPENING_WORDS = list(`
  what which who whom whose when where why how is are was were do does did can could would should
  tell give show explain describe write list name define summarize translate compare create make
  find calculate generate convert solve help compose draft suggest recommend please
  in on at to for from by with about as if the a an my your our their this that these those
  i you he she it we they and or but
  was wer wie wo wann warum welche welcher welches ist sind kann kannst erkläre schreibe nenne
  que quoi qui quel quelle comment où quand pourquoi est sont peux explique écris
  qué quién cuál cómo dónde cuándo es son puedes explica escribe
`);

/** Function words that decide about an answer all the same: who, when, from where, whose. */
export const DECISIVE_WORDS = list(`
  who whom whose when where why which from into onto until since during between through against via by
  my your his her its our their mine yours he she him we us they them
  was were did had will shall should must may might been
  wer wen wem wessen wann wo warum woher wohin von nach seit bis gegen zwischen mein dein sein ihr unser
  er wir war waren wird werden würde soll sollte muss darf
  quand où pourquoi de depuis contre entre mon ma mes ton ta tes son sa ses notre votre leur nous
  quién cuándo dónde desde hasta contra entre mi tu su nuestro
`);

/** Words after which "how" asks for a measure. */
export const MEASURES = list(
  "many much long old far often big tall deep high fast wide heavy soon",
);

/** Words that turn a statement around, by language. */
export const NEGATIONS = list(`
  no not never none nobody nothing nowhere neither nor without non cannot hardly except unless instead
  nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts niemand außer
  ne pas jamais sans aucun aucune ni rien personne sauf
  nunca sin jamás ningún ninguna ninguno nada nadie tampoco excepto
  não sem nenhum nenhuma ninguém mai senza nessun nessuno nessuna niente
  不 没 沒 無 无 别 別 未 勿 莫 非
`);

/** Numbers and positions as words. */
export const NUMBER_WORDS = list(`
  zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
  sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
  hundred thousand million billion trillion dozen half quarter third double triple twice thrice once
  first second fourth fifth sixth seventh eighth ninth tenth last next previous
  null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend million
  milliarde erste zweite dritte vierte letzte halb doppelt
  deux trois quatre cinq sept huit neuf dix onze douze cent mille premier première deuxième
  troisième dernier dernière
  dos tres cuatro cinco seis siete ocho nueve diez once doce cien mil primero primera segundo
  tercero último última
`);

/** Words whose opposite fits into the same sentence. */
export const POLAR_WORDS = list(`
  before after more less fewer most least increase decrease raise lower rise fall higher above below
  over under max min maximum minimum largest smallest biggest longest shortest best worst better worse
  oldest youngest earliest latest highest lowest fastest slowest cheapest buy sell enable disable allow
  deny block unblock start stop open close lock unlock on off up down left right in out include exclude
  add remove delete create install uninstall encrypt decrypt encode decode compress decompress import
  export upload download send receive sender receiver push pull read write true false yes legal illegal
  safe unsafe possible impossible valid invalid always sometimes often rarely with today tomorrow
  yesterday now early late morning evening night monday tuesday wednesday thursday friday saturday
  sunday january february march april may june july august september october november december spring
  summer autumn winter north south east west hot cold big small long short old new young male female man
  woman men women boy girl father mother son daughter brother sister husband wife input output source
  target client server parent child ascending descending asc desc positive negative plus minus
  vor nach mehr weniger größer kleiner öffnen schließen kaufen verkaufen heute morgen gestern mit
  avant après plus moins ouvrir fermer acheter vendre avec hier demain
  antes después más menos abrir cerrar comprar vender con hoy mañana ayer
`);

/** Contractions and their long forms. */
export const CONTRACTIONS: ReadonlyMap<string, string> = new Map(
  `what's what is|who's who is|where's where is|how's how is|when's when is|why's why is|it's it is
  |there's there is|here's here is|i'm i am|you're you are|we're we are|they're they are
  |isn't is not|aren't are not|wasn't was not|weren't were not|don't do not|doesn't does not
  |didn't did not|won't will not|wouldn't would not|can't can not|cannot can not|couldn't could not
  |shouldn't should not|haven't have not|hasn't has not|hadn't had not|mustn't must not`
    .split("|")
    .map((pair): [string, string] => {
      const [short = "", ...long] = pair.trim().split(" ");
      return [short, long.join(" ")];
    }),
);
