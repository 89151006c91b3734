import { placeIn, type TextPlace } from './place.ts'
import { type Shape, shapeAt } from './shapes.ts'

/** What may be written at a place. */
export interface Offers {
  /** What is replaced: from here to the caret. */
  readonly from: number
  readonly offers: readonly Offer[]
  /** The ids of agents that contain this text, too; `null`: none belong here. */
  readonly idsLike: string | null
  /** An id as it is written here. */
  writtenId(id: string): string
}

export interface Offer {
  readonly word: string
  readonly about: string
  readonly kind: 'key' | 'value'
  /** What is inserted. */
  readonly text: string
}

/** `null`: nothing is known of this place. */
export function offersAt(text: string, caret: number, isOfApp: boolean): Offers | null {
  const place = placeIn(text, caret)
  if (place === null) return null
  const shape = shapeAt(place.path, isOfApp)
  if (shape === null) return null
  const offers = [...keysOf(shape, place), ...valuesOf(shape, place)]
  const hasIds = shape.hasIds === true && place.mayBeValue
  if (offers.length === 0 && !hasIds) return null
  return {
    ...{ from: place.from, offers, idsLike: hasIds ? place.word : null },
    writtenId: (id) => (place.quote !== '' || PLAIN.test(id) ? id : JSON.stringify(id)),
  }
}

function keysOf({ members }: Shape, place: TextPlace): readonly Offer[] {
  if (!place.mayBeKey || members === undefined) return []
  return [...members]
    .filter(([name]) => !place.used.includes(name))
    .map(([name, member]) => {
      return { word: name, about: member.about, kind: 'key', text: keyText(name, member.shape, place) }
    })
}

function valuesOf({ words = [] }: Shape, { mayBeValue }: TextPlace): readonly Offer[] {
  if (!mayBeValue) return []
  return words.map(([word, about]) => ({ word, about, kind: 'value', text: word }))
}

/** A mapping begins in the next line. */
function keyText(name: string, { words = [], members, items }: Shape, place: TextPlace): string {
  if (place.quote !== '') return name
  if (place.isFlow) return `${name}: `
  const inside = `\n${' '.repeat(place.column + 2)}`
  if (items !== undefined) return `${name}:${inside}- `
  return members !== undefined && words.length === 0 ? `${name}:${inside}` : `${name}: `
}

/** YAML reads it as text. */
const PLAIN = /^(?!(?:true|false|null)$)[A-Za-z][\w.-]*$/i
