export interface Mutant {
  /** The fault, in words. */
  name: string;
  file: string;
  /** Stands in the file exactly once. */
  find: string;
  replace: string;
  /** Files of the default test run that must notice. */
  tests: readonly string[];
}
