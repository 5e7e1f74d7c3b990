"""What `fit` leaves and may be published: sample, save, load, error bars."""
