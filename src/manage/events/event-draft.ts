import type { NewEvent } from '../../store/events/events.ts'
import { storedObject } from '../../store/engine/stored.ts'
import { newId } from '../http/ids.ts'

/** An event before it has an id and a time. */
export type EventDraft = Omit<NewEvent, 'id' | 'atMs' | 'data'> & {
  readonly data: Readonly<Record<string, unknown>>
}

export function eventOf({ data, ...draft }: EventDraft, atMs: number): NewEvent {
  return { ...draft, id: newId('evt'), atMs, data: JSON.stringify({ ...data, app: draft.app }) }
}

export function draftText(draft: EventDraft): string {
  return JSON.stringify(draft)
}

/** Parses the output of `draftText`. Drafts of earlier versions have no app. */
export function parseDraft(text: string): EventDraft {
  return { app: null, ...storedObject(text) } as unknown as EventDraft
}
