import fc from 'fast-check'

const SURROGATES_BEGIN = 0xd800
const SURROGATES_COUNT = 0x800

/**
 * As `unit` of a string: any character but half surrogate pairs, as 'binary' is. fast-check makes a table of all
 * characters for that, which takes a process 1.8 s.
 */
export const ANY_CHARACTER = fc.nat(0x10_ffff - SURROGATES_COUNT).map(
  (number) => String.fromCodePoint(number < SURROGATES_BEGIN ? number : number + SURROGATES_COUNT),
  // With this, fast-check has texts such as `__proto__` among the others.
  (character) => {
    const code = typeof character === 'string' ? character.codePointAt(0) : undefined
    if (code === undefined || String.fromCodePoint(code) !== character) throw new Error('not a character')
    return code < SURROGATES_BEGIN ? code : code - SURROGATES_COUNT
  },
)
