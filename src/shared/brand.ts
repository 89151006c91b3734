declare const brand: unique symbol

/** A value that has been parsed: a `Brand<string, 'Ja4'>` can only come from the code that makes one. */
export type Brand<Base, Name extends string> = Base & { readonly [brand]: Name }
