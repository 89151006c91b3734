/** What is wrong with an agent's name, in words that can follow it; `null`: it is valid. */
export function wrongInName(name: string): string | null {
  if (name.trim() !== name || name === '') return 'is empty, or begins or ends with a blank'
  if (INVISIBLE.test(name)) return 'has an invisible character'
  if (MARKS_IN_A_ROW.test(name.normalize('NFC'))) return 'has several combining marks on one letter'
  if (!LETTER.test(name)) return 'has no letter'
  return null
}

/**
 * Whether a word mixes Latin letters with letters that look like Latin ones. Only an imitator writes a name
 * so.
 */
export function mixesScripts(name: string): boolean {
  const words = name.normalize('NFKC').match(WORDS) ?? []
  return words.some((word) => LATIN.test(word) && LIKE_LATIN.test(word))
}

/** Names that look alike at a glance get the same result: letters and digits, by how they look. */
export function looksOf(name: string): string {
  const plain = name.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  const latin = [...plain].map((character) => LOOKS.get(character) ?? character).join('')
  return latin
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')
}

const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u
const MARKS_IN_A_ROW = /\p{M}{3}/u
const LETTER = /[\p{L}\p{N}]/u
const WORDS = /[\p{L}\p{M}\p{N}]+/gu
const LATIN = /\p{Script=Latin}/u
const LIKE_LATIN =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\p{Script=Deseret}]/u

/** After decomposition, in lower case. */
const LOOKS: ReadonlyMap<string, string> = new Map([
  // Digits and letters that look the same in a list.
  ...pairs('0o 1l il |l 5s'),
  // Cyrillic.
  ...pairs(
    'аa вb сc ԁd еe ѐe ёe ғf ԍg һh нh іl їl ӏl јj кk қk мm оo рp ԛq гr ѕs тt υu ѵv ѡw ԝw хx уy үy пn ьb ոn',
  ),
  // Greek.
  ...pairs('αa βb ϲc ςc εe ηn γy ιl κk μm νv οo ρp σo τt υu χx ωw ζz'),
  // Armenian.
  ...pairs('աw եe հh օo սu զq ց9 ղn ոn յj'),
  // Latin letters that do not decompose.
  ...pairs(
    'ıl ɡg ɑa ƅb ɩl łl øo đd ħh ŧt ƒf ꞓc ʏy ᴏo ᴀa ʙb ᴄc ᴅd ᴇe ɢg ʜh ɪl ᴊj ᴋk ʟl ᴍm ɴn ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ᴢz',
  ),
])

function pairs(text: string): readonly (readonly [string, string])[] {
  return text.split(' ').map((pair) => {
    const [from, to] = [...pair] as [string, string]
    return [from, to]
  })
}
