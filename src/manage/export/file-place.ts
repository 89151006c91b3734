/** Where files are put, each whole or not at all. */
export interface FilePlace {
  begin(): Promise<DraftFile>
  /** Aborts what is being written. The place can be used again. */
  close(): Promise<void>
}

/** A file that is not visible yet. */
export interface DraftFile {
  append(bytes: Uint8Array): Promise<void>
  /** Resolves when the file is durable under this name, with folders, in place of one of the same name. */
  finish(name: string): Promise<void>
  /** Removes what was written. It may be finished already. */
  drop(): Promise<void>
}
