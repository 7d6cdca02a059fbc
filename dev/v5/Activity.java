/** Something that goes on until it is stopped. */
interface Activity {
    /** Ends it, and waits until it has ended and told so. */
    void stop() throws Exception;
}
